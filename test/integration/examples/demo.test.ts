import { expect, inject, it, vi } from 'vitest';
import { cliForTest } from '../support/service.ts';
import { runExample } from './run-example.ts';

const PREFIX = 'example-demo';

it('says what to export where it is not where examples look, and is what they need', async () => {
  const given = {
    KAFKA_BROKERS: inject('brokers').join(','),
    SCHEMA_REGISTRY_URL: inject('registryUrl'),
    TOPIC_PREFIX: PREFIX,
  };
  const demo = cliForTest(['demo', '--orders', '20', '--rate', '5'], given);
  const said = await vi.waitUntil(() => /: export (.*)/.exec(demo.stderr())?.[1], 60_000);
  const exported = said.split(' ').map((one) => one.split('='));
  expect(Object.fromEntries(exported)).toEqual(given);

  const revenue = runExample('03-revenue.mjs', PREFIX);
  await revenue.until((lines) => lines.some((line) => /^\d{4}-\d\d-\d\d /.test(line)));
  expect(await revenue.end('SIGTERM')).toBe(0);
  expect(await demo.end('SIGTERM')).toBe(0);
});
