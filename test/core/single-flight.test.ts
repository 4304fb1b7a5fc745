import { expect, it } from 'vitest';
import { singleFlight } from '../../src/core/single-flight.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A question whose answers come when they are let, with its number as the answer. */
function slow() {
  const open: (() => void)[] = [];
  let asked = 0;
  const ask = () => {
    const number = (asked += 1);
    return new Promise<number>((resolve) => open.push(() => resolve(number)));
  };
  return { ask, asked: () => asked, answer: () => open.shift()!() };
}

it('asks once for all who ask before it is asked', async () => {
  const { ask, asked, answer } = slow();
  const together = singleFlight(ask);
  const both = Promise.all([together(), together()]);
  await turn();
  answer();
  expect(await both).toEqual([1, 1]);
  expect(asked()).toBe(1);
});

it('gives nobody an answer to a question that was asked before', async () => {
  const { ask, asked, answer } = slow();
  const together = singleFlight(ask);
  const first = together();
  await turn();
  const later = Promise.all([together(), together(), together()]);
  answer();
  expect(await first).toBe(1);
  await turn();
  answer();
  expect(await later).toEqual([2, 2, 2]);
  expect(asked()).toBe(2);
});

it('tells those of one question of its failure, and asks again for the next', async () => {
  let isAway = true;
  const together = singleFlight(() =>
    isAway ? Promise.reject(new Error('away')) : Promise.resolve('there'),
  );
  const [one, other] = await Promise.allSettled([together(), together()]);
  expect([one.status, other.status]).toEqual(['rejected', 'rejected']);
  isAway = false;
  expect(await together()).toBe('there');
});
