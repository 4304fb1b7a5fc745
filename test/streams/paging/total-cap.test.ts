import { describe, expect, it } from 'vitest';
import { mayBeCut } from '../../../src/streams/paging/reading-proofs.ts';

describe('whether a list may be cut off at its total', () => {
  const at = (top: number, more: Partial<Parameters<typeof mayBeCut>[0]> = {}) =>
    mayBeCut({ top, peak: top, lacksMass: false, fitsOnePage: false, ...more });

  it.each([20, 50, 100, 128, 250, 500, 999, 1_000, 1_023, 1_024, 4_096, 9_999, 10_000, 65_535])(
    'it may at %d, the highest total so far',
    (total) => {
      expect(at(total)).toBe(true);
    },
  );

  it.each([0, 1, 8, 10, 16, 19, 21, 99, 321, 1_001, 10_001, 9_998])(
    'it is whole at %d',
    (total) => {
      expect(at(total)).toBe(false);
    },
  );

  it('it is whole below a total that was seen before', () => {
    expect(at(10_000, { peak: 10_001 })).toBe(false);
  });

  it('it may below it, too, where much vanished at once: another server may have another cap', () => {
    expect(at(5_000, { peak: 9_000, lacksMass: true })).toBe(true);
    expect(at(5_001, { peak: 9_000, lacksMass: true })).toBe(false);
  });

  it('it is whole where it does not fill its only page', () => {
    expect(at(40, { fitsOnePage: true })).toBe(false);
  });
});
