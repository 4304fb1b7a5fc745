import { describe, expect, it } from 'vitest';
import { OldestSlot } from '../../src/state/oldest-slot.ts';
import { mulberry32 } from '../support/chance.ts';

describe('oldestSlot', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])('is the first of the earliest time: seed %i', (seed) => {
    const random = mulberry32(seed);
    const below = (most: number) => Math.floor(random() * most);
    const times = Array.from({ length: 1 + below(40) }, () => below(20));
    const oldest = new OldestSlot(times);
    for (let k = 0; k < 500; k++) {
      expect(oldest.slot).toBe(times.indexOf(Math.min(...times)));
      expect(oldest.time).toBe(Math.min(...times));
      const slot = random() < 0.7 ? oldest.slot : below(times.length);
      times[slot] = below(20) + (random() < 0.7 ? k : 0);
      oldest.set(slot, times[slot]);
    }
  });
});
