import { expect, it } from 'vitest';
import { directLoopback } from '../../src/commands/demo-environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { proxyFor } from '../../src/core/proxies.ts';

it.each([
  ['no_proxy', { no_proxy: 'intranet.example' }],
  ['NO_PROXY', { NO_PROXY: 'intranet.example' }],
  ['neither', {}],
])('the demo reaches its own servers on a machine with a proxy (%s set)', (_, set) => {
  const env = {
    http_proxy: 'http://proxy.example:3128',
    API_BASE_URL: 'http://127.0.0.1:1',
    API_KEY: 'k',
    ...set,
  };
  const { api } = loadConfig({ env: { ...env, ...directLoopback(env) }, cwd: '/', needs: ['api'] });
  const isProxied = (address: string) => proxyFor(new URL(address), api.proxies!) !== undefined;
  expect(isProxied('http://127.0.0.1:8081')).toBe(false);
  expect(isProxied('http://localhost:8081')).toBe(false);
  expect(isProxied('http://api.example')).toBe(true);
  expect(isProxied('http://intranet.example')).toBe(Object.keys(set).length === 0);
});
