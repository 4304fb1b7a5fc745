import { lastValueFrom, of, toArray } from 'rxjs';
import { afterEach, expect, it } from 'vitest';
import { listNamed } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { startSandbox } from '../../../src/sandbox/index.ts';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { withFault } from '../../../src/sandbox/named-faults.ts';
import { listRequest } from '../../../src/streams/decode/list-request.ts';
import { PagePlan } from '../../../src/streams/http/page-plan.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { ScanTrouble } from '../../../src/streams/paging/scan-trouble.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { hurriedTime } from '../../support/hurried-time.ts';
import { tokenOf } from '../../sandbox/client.ts';

let sandbox: Sandbox;
afterEach(() => sandbox.close());

it.each([
  ['offset-rounded', 1_000],
  ['offset-nearest', 1_000],
  ['offset-multiple-only', 1_000],
  ['offset-wraps', 1_000],
  ['page-capped', 1_000],
  ['page-fixed', 1_000],
  ['page-capped=30 offset-rounded', 1_000],
  ['offset-rounded offset-echoed', 1_000],
  ['offset-multiple-only page-capped=30 offset-echoed', 1_000],
  ['offset-rounded page-fixed', 1_000],
  ['poison-record', 999],
  ['poison-record=100095 poison-record=100500', 998],
  ['poison-record offset-rounded', 999],
  ['poison-record=100095 poison-record=100500 offset-rounded', 998],
  ['poison-record=100095 poison-record=100500 offset-multiple-only', 998],
  ['poison-record=100095 poison-record=100500 offset-nearest', 998],
  ['poison-record=100095 offset-rounded page-capped=30', 999],
  ['large-page-504=30', 1_000],
  ['large-page-504=30 offset-rounded', 1_000],
])('the API reads to its end with --fault %s', async (names, count) => {
  sandbox = await startSandbox(
    names.split(' ').reduce(withFault, { records: { orders: 1_000 }, quotaPerMinute: 100_000 }),
  );
  const keyOf = keyOfFields(['order_number']);
  const text = await tokenOf(sandbox);
  const token = { text, askedAt: 0, lifeMs: 1e9, serverTime: undefined };
  const { scheduler } = hurriedTime();
  const plan = new PagePlan();
  const list = listRequest({
    baseUrl: new URL(sandbox.url),
    list: listNamed(WINE, 'orders'),
    tokens: {
      token$: of(token),
      current: () => token,
      report: () => ({ isFinal: false, pauseMs: undefined, logsIn: false }),
    },
    scheduler,
    keyOf,
    plan,
  });
  const troubles: ScanTrouble[] = [];
  const scan = () =>
    lastValueFrom(
      pages({
        request: (page) => list(page, (source) => source),
        keyOf,
        pageSize: 100,
        plan,
        onTrouble: (trouble) => troubles.push(trouble),
      }).pipe(toArray()),
    );
  const before = sandbox.truth.requests('orders').length;
  const first = await scan();
  const keys = (read: typeof first) =>
    new Set(read.flatMap(({ answer }) => answer.data.flatMap(({ key }) => key ?? [])));
  expect(keys(first).size).toBe(count);
  expect(troubles.includes('gap')).toBe(count < 1_000);
  expect(sandbox.truth.requests('orders').length - before).toBeLessThan(300);
  expect(keys(await scan()).size).toBe(count);
});
