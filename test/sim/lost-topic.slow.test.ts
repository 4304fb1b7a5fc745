import { expect, it, vi } from 'vitest';
import { oneProcess } from './one-process.ts';
import { chainsOf } from './published.ts';

vi.setConfig({ testTimeout: 120_000 }); // minutes of virtual time take seconds, and more where the machine is busy

const A_MINUTE_MS = 60_000;

it('publishes a new order as r, not again as c, after its topic was made anew, where stamps run ahead of Date', async () => {
  const { time, api, broker, registry, topic } = oneProcess({
    ...{ seed: 5, resource: 'orders', perMinute: 100 },
    env: { LOOKBACK_MS: '15000', SWEEP_INTERVAL_MS: '60000', PAGE_SIZE: '30' },
  });
  const grown = () => {
    const before = new Set(api.list.truth().keys());
    api.list.grow();
    return [...api.list.truth().keys()].find((key) => !before.has(key))!;
  };
  const eventsOf = (key: string) =>
    (chainsOf(broker.read(topic), registry).get(key) ?? []).map((event) =>
      event === 'tombstone' ? event : event.op,
    );

  await time.pass(A_MINUTE_MS);
  api.list.stampSkewMs = 10 * A_MINUTE_MS;
  const before = grown(); // behind the first page of the list
  await time.pass(A_MINUTE_MS);
  broker.makeAnew(topic, time.now());
  api.list.alter(Number([...api.list.truth().keys()][0]), {}); // the next commit finds the loss
  await time.pass(3 * A_MINUTE_MS);
  const after = grown();
  await time.pass(A_MINUTE_MS);

  expect(eventsOf(before)).toEqual(['c', 'r']);
  expect(eventsOf(after)).toEqual(['c']);
});
