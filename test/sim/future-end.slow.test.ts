import { describe, expect, it, vi } from 'vitest';
import { polledOrders } from './polled-orders.ts';
import type { FutureEnd } from './sim-api.ts';

vi.setConfig({ testTimeout: 240_000 }); // hours of virtual time take seconds, and more where the machine is busy

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
describe.each<[FutureEnd, number]>([
  ['empty', 10 * SECOND],
  [500, 5 * MINUTE],
])('a list that answers a modifiedToDate in the future with: %s', (futureEnd, firstMs) => {
  it('is polled up to the time of the server, and each change comes soon', async () => {
    const { process, time, lag, told } = polledOrders({ futureEnd });
    await time.pass(10 * SECOND);
    expect(await lag(10 * MINUTE)).toBeLessThan(firstMs);
    await time.pass(5 * MINUTE);
    for (let n = 0; n < 10; n += 1) expect(await lag(MINUTE)).toBeLessThan(10 * SECOND);
    expect(told('finds dates').at(-1)).toMatch(
      /requests have modifiedToDate set to the server's time/,
    );
    expect([process.state, told('fails:')]).toEqual(['running', []]);
  });
});

it('the initial snapshot from START_FROM has every record of a list that shows nothing for a modifiedToDate in the future', async () => {
  const { time, told } = polledOrders(
    { futureEnd: 'empty' },
    { START_FROM: '2000-01-01T00:00:00Z' },
  );
  await time.pass(10 * SECOND);
  expect(told('first-read publishes r').length).toBe(80);
});
