import { expect, it } from 'vitest';
import { simulate } from './simulation.ts';

it('gives the same run for the same seed, and another for another', async () => {
  const [one, again, other] = [await simulate(3), await simulate(3), await simulate(4)];
  expect(again).toEqual(one);
  expect(other.trace).not.toEqual(one.trace);
});
