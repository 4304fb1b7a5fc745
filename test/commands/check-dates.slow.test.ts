import { expect, it, onTestFinished } from 'vitest';
import type { Window } from '../../src/streams/paging/poll.ts';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { checkDates } from '../../src/commands/check-dates.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { withFault } from '../../src/sandbox/named-faults.ts';
import type { Readings, SandboxOptions } from '../../src/sandbox/options.ts';
import type { Answer } from '../../src/streams/decode/response.ts';
import { keyOfFields } from '../../src/streams/records/key-of.ts';
import { connect, handClock } from '../sandbox/client.ts';
import type { Page } from '../sandbox/client.ts';
import { records } from '../support/records.ts';
import { ISO } from '../../src/description/time-format.ts';

/** What `check` says of the dates of a sandbox's orders, and the requests that it took. */
async function checked(readings: Partial<Readings>, ...faults: string[]) {
  const clock = handClock();
  const plain: SandboxOptions = { now: clock.now, quotaPerMinute: 10_000, readings };
  const sandbox = await startSandbox(faults.reduce(withFault, plain));
  onTestFinished(() => sandbox.close());
  const { get } = await connect(sandbox);
  let requests = 0;
  const ask = async ({ from, to }: Partial<Window>): Promise<Answer> => {
    requests += 1;
    const dates = { ...(from && { modifiedFromDate: from }), ...(to && { modifiedToDate: to }) };
    const answer = await get('orders', { ...dates, offset: 0, pageSize: 100 });
    if (answer.status !== 200) {
      const context = { status: answer.status };
      throw new CellarstreamError('API_STATUS', `answered ${answer.status}`, { context });
    }
    const { data, pagination } = (await answer.json()) as Page;
    return {
      data: records(data, keyOfFields(['order_number'])),
      total: pagination.total_records,
      hasNext: pagination.has_next_page,
      span: { begin: 0, end: 1 },
      serverTime: clock.now(),
    };
  };
  const found = await checkDates(await ask({}), ask, {
    parameters: listNamed(WINE, 'orders').dates!,
    localTime: clock.now,
    ...{ stamp: 'updated_at', times: ISO },
  });
  return { ...found, requests: requests - 1 };
}

it('check says that dates are read as written, for three requests', async () => {
  expect(await checked({})).toEqual({
    text: 'date parameters work as documented',
    isUnusual: false,
    requests: 3,
  });
});

it.each<[string, Partial<Readings>, RegExp]>([
  ['a zone of parameters', { parameterZone: { minutes: -480 } }, /an offset of -8:00 h from/],
  ['a zone of stamps', { stampZone: { minutes: 345 } }, /an offset of -5:45 h from/],
  [
    'refused ends in the future',
    { futureEnd: 'refuse' },
    /requests have modifiedToDate set to the server's time/,
  ],
  [
    'a zone, and refused ends',
    { parameterZone: { minutes: -480 }, futureEnd: 'refuse' },
    /an offset of -8:00 h from/,
  ],
  [
    'dates that are ignored',
    { dates: 'ignored' },
    /ignores modification dates: the list is not polled/,
  ],
  [
    'windows that may be a day long',
    { maxRangeDays: 1 },
    /requests have modifiedToDate set to the server's time/,
  ],
])('check finds %s', async (_, readings, text) => {
  const found = await checked(readings);
  expect(found.text).toMatch(text);
  expect(found.isUnusual).toBe(true);
  expect(found.requests).toBeLessThan(40);
});

it.each(['end-in-future-empty', 'end-in-future-500'])(
  'check says which end a list takes that has the fault %s',
  async (fault) => {
    const found = await checked({}, fault);
    expect(found.text).toMatch(/requests have modifiedToDate set to the server's time/);
    expect(found.isUnusual).toBe(true);
    expect(found.requests).toBeLessThan(20);
  },
);

it.each([
  ['dates-refused', 'the list refuses modification dates in every form (answered 403)'],
  ['dates-refused=414', 'the list refuses modification dates in every form (answered 414)'],
  ['dates-504', 'requests that filter by modification date fail or get no response'],
  ['dates-refused=429', 'requests that filter by modification date fail or get no response'],
])('check says that a list with the fault %s will be swept, not polled', async (fault, text) => {
  const found = await checked({}, fault);
  expect(found.text).toContain(text);
  expect(found.text).toContain('the list is not polled; changes are found by repeated full scans');
  expect(found.isUnusual).toBe(true);
  expect(found.requests).toBeLessThan(40);
});

it('check fails as before where requests without dates fail too', async () => {
  await expect(checked({}, 'page-capped', 'large-page-504=10')).rejects.toThrow('answered 504');
});

it('check is not misled by dates that are cut to the day', async () => {
  expect((await checked({ dates: 'days' })).isUnusual).toBe(false);
});
