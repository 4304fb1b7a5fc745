import { describe, expect, it, vi } from 'vitest';
import { oneProcess } from './one-process.ts';
import { polledOrders } from './polled-orders.ts';
import type { DatedFailure } from './sim-api.ts';
import { ask } from './sim-signals.ts';

vi.setConfig({ testTimeout: 240_000 }); // hours of virtual time take seconds, and more where the machine is busy

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** One failure of each kind; `dated-patience.test.ts` has all statuses. */
const FROM_THE_START: readonly DatedFailure[] = [401, 504];
const LATER: readonly DatedFailure[] = [400, 'firewall', 'drop'];

/** Orders of a well-behaved API but for requests with dates. */
function story(datedFailure?: DatedFailure) {
  const orders = polledOrders(datedFailure === undefined ? {} : { datedFailure });
  const { api, lag } = orders;
  /** The longest of several lags, in ms. */
  const lags = async (count: number, withinMs: number) => {
    const all: number[] = [];
    for (let n = 0; n < count; n += 1) all.push(await lag(withinMs));
    return Math.max(...all);
  };
  const logins = () => api.arrivals.filter(({ what }) => what === 'login').length;
  return { ...orders, lags, logins };
}

describe('a list whose requests with dates fail', () => {
  it.each(FROM_THE_START)(
    'with %s from the start: goes on with sweeps, says so, and is polled again once dates are taken',
    async (failure) => {
      const { process, time, api, lag, lags, told, logins } = story(failure);
      expect(await lag(5 * MINUTE)).toBeLessThan(5 * MINUTE);
      await time.pass(8 * MINUTE); // each form of dates is given up after a minute at least
      expect(await lags(10, 2 * MINUTE)).toBeLessThan(20 * SECOND);
      expect([process.state, told('fails:')]).toEqual(['running', []]);
      expect(told('finds dates').at(-1)).toMatch(
        /is not polled; changes are found by repeated full scans$/,
      );
      expect(logins()).toBeLessThanOrEqual(4);

      await time.pass(10 * MINUTE); // in which polls are tried once more
      expect(told('finds dates').length).toBe(1);
      api.datedFailure = null;
      await time.pass(25 * MINUTE);
      expect(told('finds dates').at(-1)).toMatch(/as written$/);
      const before = api.arrivals.length;
      expect(await lags(5, MINUTE)).toBeLessThan(10 * SECOND);
      expect(api.arrivals.length).toBeGreaterThan(before);
      expect([process.state, told('fails:')]).toEqual(['running', []]);
    },
  );

  it.each(LATER)(
    'with %s after polls have worked: changes come in bounded time',
    async (failure) => {
      const { process, time, api, lag, lags, told, logins } = story();
      await time.pass(3 * MINUTE);
      expect(await lags(3, MINUTE)).toBeLessThan(10 * SECOND);
      const before = logins();
      api.datedFailure = failure;
      expect(await lag(5 * MINUTE)).toBeLessThan(5 * MINUTE);
      await time.pass(5 * MINUTE);
      expect(await lags(10, 2 * MINUTE)).toBeLessThan(20 * SECOND);
      expect(logins() - before).toBeLessThanOrEqual(3);
      expect([process.state, told('fails:')]).toEqual(['running', []]);
    },
  );
});

it('an outage of the whole API for ten minutes is no reason to give polls up', async () => {
  const { process, time, api, lags, told } = story();
  await time.pass(3 * MINUTE);
  api.isDown = true;
  await time.pass(10 * MINUTE);
  api.isDown = false;
  await time.pass(2 * MINUTE);
  expect(await lags(5, MINUTE)).toBeLessThan(10 * SECOND);
  expect([process.state, told('finds dates'), told('fails:')]).toEqual(['running', [], []]);
});

it('a resync of a list that is not polled has its turn among the sweeps, which use the whole quota', async () => {
  const { process, time, broker, lines } = oneProcess({
    seed: 3,
    resource: 'products',
    env: { PAGE_SIZE: '100' },
    perMinute: 15,
    hasLedger: true,
    datedFailure: 400,
  });
  await time.pass(5 * MINUTE);
  const since = { order_number: null, since: null };
  const requested_at = new Date(time.now()).toISOString();
  const resync = { type: 'resync', id: 'r1', account: 'default', ...since } as const;
  ask(broker, { ...resync, resources: ['products'], requested_at }, time.now());
  await time.pass(MINUTE);
  expect(lines.some((line) => line.includes('request r1 is done, 80 events'))).toBe(true);
  expect(process.state).toBe('running');
});
