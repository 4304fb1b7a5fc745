import { expect, it } from 'vitest';
import { shortened } from '../../../src/ops/status/shortened.ts';

it('shortens what is too long, and no character to half of it', () => {
  expect(shortened('paid', 4)).toBe('paid');
  expect(shortened('unpaid', 4)).toBe('unp…');
  expect(shortened('ab🍷cd', 4)).toBe('ab…');
  expect(shortened('a🍷bcd', 4)).toBe('a🍷…');
});
