import { describe, expect, it } from 'vitest';
import { newVersion, updateAll } from '../../../src/ops/page/page-updates.ts';

describe('updateAll', () => {
  it('brings all views up to date, although one of them fails', () => {
    const told: string[] = [];
    const errors: unknown[] = [];
    const failure = new Error('no such field');
    const views = [
      (text: string) => told.push(`first ${text}`),
      () => {
        throw failure;
      },
      (text: string) => told.push(`last ${text}`),
    ];
    expect(updateAll(views, 'now', (error) => errors.push(error))).toBe(false);
    expect(told).toEqual(['first now', 'last now']);
    expect(errors).toEqual([failure]);
    expect(updateAll([views[0]!], 'then', (error) => errors.push(error))).toBe(true);
    expect(errors).toHaveLength(1);
  });
});

describe('newVersion', () => {
  it('is told once, of the first that is another one', () => {
    let changes = 0;
    const told = newVersion(() => (changes += 1));
    ['1.0.0', '1.0.0', '1.0.0'].forEach(told);
    expect(changes).toBe(0);
    ['1.1.0', '1.1.0', '1.0.0', '1.2.0'].forEach(told);
    expect(changes).toBe(1);
  });
});
