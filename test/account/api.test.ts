import { firstValueFrom } from 'rxjs';
import { expect, it, onTestFinished } from 'vitest';
import { openApi } from '../../src/account/api.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { steadyScheduler } from '../../src/core/clock.ts';
import type { Hooks } from '../../src/observe/hooks.ts';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { createRegistry } from '../../src/schemas/registry/registry.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import { isStale } from '../../src/streams/http/response-age.ts';
import { serve } from '../support/http-server.ts';

/** A class, as a host may have one: its methods are not its own keys, and need their `this`. */
class Watching implements Pick<Hooks, 'onLogin' | 'onRequest' | 'onRetry'> {
  readonly told: string[] = [];
  onLogin(): void {
    this.told.push('login');
  }
  onRequest({ what }: { readonly what: string }): void {
    this.told.push(`request ${what}`);
  }
  onRetry({ what }: { readonly what: string }): void {
    this.told.push(`retry ${what}`);
  }
}

it('tells hooks that are an instance of a class', async () => {
  const sandbox = await startSandbox({ records: { orders: 5 } });
  onTestFinished(() => sandbox.close());
  sandbox.fault({ endpoint: 'orders', kind: 'status', status: 503, times: 1 });
  const env = { API_BASE_URL: sandbox.url, API_KEY: sandbox.apiKey };
  const { api: config } = loadConfig({ env, cwd: import.meta.dirname, needs: ['api'] });
  const hooks = new Watching();
  const unlimited = <T>(source: T): T => source;
  const api = openApi({
    ...{ config, description: WINE, loginLimit: unlimited },
    scheduler: steadyScheduler,
    hooks,
  });
  onTestFinished(() => api.close());

  await firstValueFrom(api.list(listNamed(WINE, 'orders')).pages()({ pageSize: 5 }, unlimited));
  expect(hooks.told).toEqual([
    'request login',
    'login',
    'request orders',
    'retry orders',
    'request orders',
  ]);
});

it('knows a page that was cached before the start by its Date, which is behind that of the login', async () => {
  const server = await serve((request, response) => {
    const isLogin = request.url!.includes('login');
    const dateMs = Date.now() - (isLogin ? 0 : 60_000);
    response.setHeader('date', new Date(dateMs).toUTCString());
    const page = { data: [], pagination: { total_records: 0, has_next_page: false } };
    response.end(JSON.stringify(isLogin ? { accessToken: 'a', expiresIn: 1_800 } : page));
  });
  onTestFinished(() => server.close());
  const env = { API_BASE_URL: server.url.origin, API_KEY: 'k' };
  const { api: config } = loadConfig({ env, cwd: import.meta.dirname, needs: ['api'] });
  const unlimited = <T>(source: T): T => source;
  const api = openApi({
    ...{ config, description: WINE, loginLimit: unlimited },
    scheduler: steadyScheduler,
  });
  onTestFinished(() => api.close());

  const page$ = api.list(listNamed(WINE, 'orders')).pages()({ pageSize: 5 }, unlimited);
  const { age } = await firstValueFrom(page$);
  expect(isStale(age)).toBe(true);
  expect(age!.staleMs).toBeGreaterThan(50_000);
});

it('reaches login, lists and registry where HTTP_PROXY is the only way to them', async () => {
  const sandbox = await startSandbox({ records: { orders: 5 } });
  const registryServer = await serve((_, response) => {
    response.writeHead(404).end('{"error_code":40401,"message":"no such subject"}');
  });
  const proxy = await startHttpProxy({
    routes: {
      'api.invalid:80': Number(new URL(sandbox.url).port),
      'registry.invalid:80': Number(registryServer.url.port),
    },
  });
  onTestFinished(async () => {
    await proxy.close();
    await registryServer.close();
    await sandbox.close();
  });
  const env = {
    API_BASE_URL: 'http://api.invalid',
    API_KEY: sandbox.apiKey,
    SCHEMA_REGISTRY_URL: 'http://registry.invalid',
    http_proxy: proxy.url,
  };
  const config = loadConfig({ env, cwd: import.meta.dirname, needs: ['api', 'registry'] });
  const unlimited = <T>(source: T): T => source;
  const api = openApi({
    ...{ config: config.api, description: WINE, loginLimit: unlimited },
    scheduler: steadyScheduler,
  });
  onTestFinished(() => api.close());
  const page$ = api.list(listNamed(WINE, 'orders')).pages()({ pageSize: 5 }, unlimited);
  expect((await firstValueFrom(page$)).data).toHaveLength(5);

  const { url, proxies } = config.registry;
  const registry = createRegistry({ url, proxies });
  onTestFinished(() => registry.close());
  expect(await registry.latest('wine.orders-value')).toBeUndefined();
  const [asked] = registryServer.requests;
  expect(asked?.headers['user-agent']).toMatch(/^cellarstream\//);
  expect(new Set(proxy.tunnels)).toEqual(new Set(['api.invalid:80', 'registry.invalid:80']));
});
