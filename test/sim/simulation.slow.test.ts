import { expect, it } from 'vitest';
import { simulate } from './simulation.ts';

it('gives the same run for the same seed, and another for another', async () => {
  const told = async (seed: number) => {
    const lines: string[] = [];
    return { lines, ...(await simulate(seed, (line) => lines.push(line))) };
  };
  const [one, again, other] = [await told(3), await told(3), await told(4)];
  expect(again).toEqual(one);
  expect(other.lines).not.toEqual(one.lines);
  expect({ ...(await simulate(3)), lines: one.lines }).toEqual(one); // though nobody listens
}, 60_000);
