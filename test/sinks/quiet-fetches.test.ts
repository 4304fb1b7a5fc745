import { expect, it } from 'vitest';
import { leastAnswer, quietFetches } from '../../src/sinks/quiet-fetches.ts';

const WAIT = 250;
const BYTES = 80;

function afterAnswers(...took: readonly number[]) {
  const quiet = quietFetches(WAIT, BYTES);
  for (const ms of took) quiet.answered('a:9092', ms, BYTES);
  return quiet;
}

it.each([
  ['nothing yet', [], 'open'],
  ['one quick answer, which may have brought what was read', [1, 250, 250, 250], 'open'],
  ['too few', [1, 1, 1], 'open'],
  ['quick ones: something is there that is no message', [1, 1, 1, 1], 'header'],
  ['quick and slow ones', [1, 260, 1, 260], 'header'],
  ['slow ones, too few for a slow machine', [250, 251, 300, 250, 250, 250, 250], 'open'],
  ['slow ones', [250, 251, 300, 250, 250, 250, 250, 250], 'end'],
  ['slow ones behind a quick one', [1, 250, 251, 300, 250, 250, 250, 250, 250], 'end'],
] as const)('takes %s for what it is', (_, took, verdict) => {
  expect(afterAnswers(...took).verdict('a:9092')).toBe(verdict);
});

it('tells brokers apart', () => {
  const quiet = afterAnswers(1, 1, 1, 1);
  expect(quiet.verdict('b:9092')).toBe('open');
});

it('begins anew when something was read', () => {
  const quiet = afterAnswers(1, 1, 1, 1);
  quiet.reset();
  expect(quiet.verdict('a:9092')).toBe('open');
  quiet.answered('a:9092', 1, BYTES);
  expect(quiet.verdict('a:9092')).toBe('open');
});

it('takes no answer of a broker that throttles for a sign', () => {
  const quiet = quietFetches(WAIT, leastAnswer('wine.orders'));
  for (let n = 0; n < 100; n++) quiet.answered('a:9092', 1, 18); // no topic in it
  expect(quiet.verdict('a:9092')).toBe('open');
});
