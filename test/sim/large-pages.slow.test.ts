import { expect, it, vi } from 'vitest';
import { checkHeard } from './check-heard.ts';
import { oneProcess } from './one-process.ts';
import { chainsOf } from './published.ts';
import { PAGING_AS_WRITTEN } from './sim-paging.ts';

vi.setConfig({ testTimeout: 120_000 }); // minutes of virtual time take seconds, and more where the machine is busy

const A_MINUTE_MS = 60_000;
/** Place of the record that changes, behind the first page. */
const PLACE = 34;

it('publishes what it reads of a list whose large pages fail, but for answers that only show why a page fails', async () => {
  const { time, api, broker, registry, topic } = oneProcess({
    ...{ seed: 9, resource: 'inventory', perMinute: 1_000 },
    env: { POLL_INTERVAL_MS: '4000', PAGE_SIZE: '21' },
  });
  api.paging = { ...PAGING_AS_WRITTEN, large: { offset: 21, pageSize: 7 } };
  const key = Number([...api.list.truth().keys()][PLACE]);
  const until = time.now() + 2 * A_MINUTE_MS;
  while (time.now() < until) {
    api.list.alter(key, {});
    await time.pass(500);
  }
  await time.pass(2 * A_MINUTE_MS);

  const chains = chainsOf(broker.read(topic), registry);
  expect(checkHeard(chains, api, [])).toEqual([]);
  const owed = api.heard.filter(({ isOwed }) => isOwed);
  expect(owed.filter(({ query }) => query.offset > 21).length).toBeGreaterThan(10);
  const heard = api.heard.map((each) => ({ ...each, isOwed: true }));
  const all = { heard, list: api.list, isDateSetBack: false };
  expect(checkHeard(chains, all, []).length).toBeGreaterThan(0);
});
