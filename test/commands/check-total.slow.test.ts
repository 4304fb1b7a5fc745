import { firstValueFrom, of } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { checkTotal } from '../../src/commands/check-total.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { withFault } from '../../src/sandbox/named-faults.ts';
import { listRequest } from '../../src/streams/decode/list-request.ts';
import { tokenOf } from '../sandbox/client.ts';
import { hurriedTime } from '../support/hurried-time.ts';
import { ISO } from '../../src/description/time-format.ts';
import { WINE_STAMPS } from '../support/records.ts';

let sandbox: Sandbox;
afterEach(() => sandbox.close());

/** The finding of `check` about the total of a list, and the requests that it took. */
async function checked(resource: 'orders' | 'inventory', records: number, ...faults: string[]) {
  sandbox = await startSandbox(
    faults.reduce(withFault, { records: { [resource]: records }, quotaPerMinute: 100_000 }),
  );
  const text = await tokenOf(sandbox);
  const token = { text, askedAt: 0, lifeMs: 1e9, serverTime: undefined };
  const list = listRequest({
    baseUrl: new URL(sandbox.url),
    list: listNamed(WINE, resource),
    tokens: {
      token$: of(token),
      current: () => token,
      report: () => ({ isFinal: false, pauseMs: undefined, logsIn: false }),
    },
    stamps: WINE_STAMPS,
    scheduler: hurriedTime().scheduler,
  });
  const ask = (query: object) =>
    firstValueFrom(list({ offset: 0, pageSize: 100, ...query }, (source) => source));
  const first = await ask({});
  const before = sandbox.truth.requests(resource).length;
  const found = await checkTotal(first, ask, {
    pageSize: 100,
    totalName: 'total_records',
    keyFields: resource === 'orders' ? ['order_number'] : ['sku'],
    takesDates: resource === 'orders',
    times: ISO,
    now: Date.now(),
  });
  return { found, requests: sandbox.truth.requests(resource).length - before };
}

describe('a total that stops at 500', () => {
  it('is found before run where windows of dates have more records together', async () => {
    const { found, requests } = await checked('orders', 1_000, 'total-capped=500');
    expect(found).toContain('total_records is capped at 500, although the list has more');
    expect(requests).toBe(6);
  });

  it('may be one where the list takes no dates', async () => {
    const { found, requests } = await checked('inventory', 1_500, 'total-capped=1000');
    expect(found).toContain('total_records may be capped at 1000');
    expect(requests).toBe(2);
  });

  it('is one where the list goes on behind it', async () => {
    const { found } = await checked('inventory', 520, 'total-estimated=500');
    expect(found).toContain('total_records is capped at 500');
  });
});

it.each(['offset-limited=500', 'window-limited=500'])(
  'a list whose end the API refuses is found before run: %s',
  async (fault) => {
    const { found, requests } = await checked('inventory', 1_000, fault);
    expect(found).toContain(
      'a total of 1000 records, but returns none at the end of the list: the list is capped',
    );
    expect(requests).toBeLessThan(12);
  },
);

it.each([
  ['orders', 1_000, 3],
  ['orders', 987, 1],
  ['orders', 30_000, 3],
  ['inventory', 987, 1],
  ['inventory', 150, 2],
  ['inventory', 80, 0],
] as const)('a whole list of %s with %d records is whole, by %d requests', async (...list) => {
  const [resource, records, requests] = list;
  expect(await checked(resource, records)).toEqual({ found: undefined, requests });
});
