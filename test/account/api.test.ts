import { firstValueFrom } from 'rxjs';
import { expect, it, onTestFinished } from 'vitest';
import { openApi } from '../../src/account/api.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { steadyScheduler } from '../../src/core/clock.ts';
import type { Hooks } from '../../src/observe/hooks.ts';
import { RULES } from '../../src/resources/resources.ts';
import { startSandbox } from '../../src/sandbox/index.ts';

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
  const api = openApi({ config, loginLimit: unlimited, scheduler: steadyScheduler, hooks });
  onTestFinished(() => api.close());

  await firstValueFrom(api.list(RULES.orders).pages()({ pageSize: 5 }, unlimited));
  expect(hooks.told).toEqual([
    'request login',
    'login',
    'request orders',
    'retry orders',
    'request orders',
  ]);
});
