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
import { hurriedTime } from '../support/hurried-time.ts';
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

it('reads around a record that makes pages fail with few requests in all lanes of a list, once one lane has found it', async () => {
  const failing = 37;
  const server = await serve((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://api');
    if (pathname.includes('login')) {
      return response.end(JSON.stringify({ accessToken: 'a', expiresIn: 1_800 }));
    }
    const [from, size] = [Number(searchParams.get('offset')), Number(searchParams.get('pageSize'))];
    if (from <= failing && failing < from + size) return response.writeHead(500).end();
    const data = Array.from({ length: Math.max(0, Math.min(size, 100 - from)) }, (_, n) => ({
      order_number: from + n,
    }));
    const pagination = { total_records: 100, has_next_page: from + size < 100 };
    return response.end(JSON.stringify({ data, pagination }));
  });
  onTestFinished(() => server.close());
  const env = { API_BASE_URL: server.url.origin, API_KEY: 'k' };
  const { api: config } = loadConfig({ env, cwd: import.meta.dirname, needs: ['api'] });
  const unlimited = <T>(source: T): T => source;
  const { scheduler } = hurriedTime(Date.now());
  const api = openApi({ ...{ config, description: WINE, loginLimit: unlimited, scheduler } });
  onTestFinished(() => api.close());
  const read = async (list: string) => {
    const before = server.requests.length;
    const lane = api.list(listNamed(WINE, list)).pages();
    const { data } = await firstValueFrom(lane({ offset: 20, pageSize: 40 }, unlimited));
    return { records: data.length, requests: server.requests.length - before };
  };
  const first = await read('orders');
  const later = await read('orders');
  const other = await read('customers');
  expect([first.records, later.records, other.records]).toEqual([40, 40, 40]);
  expect(first.requests).toBeGreaterThan(10);
  expect(later.requests).toBeLessThan(first.requests / 2);
  expect(other.requests).toBeGreaterThan(10);
});
