import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { KeyTally } from '../../../src/schemas/events/key-tally.ts';
import { Chance } from '../../support/chance.ts';

/** The digest as the contract has it, in the plainest way. */
function digestOf(live: ReadonlyMap<string, number>): string {
  let sum = 0n;
  for (const [key, sequence] of live) {
    const text = Buffer.concat([Buffer.from(key), Buffer.of(10), Buffer.from(String(sequence))]);
    sum += createHash('sha256').update(text).digest().readBigUInt64BE();
  }
  return BigInt.asUintN(64, sum).toString(16).padStart(16, '0');
}

describe('KeyTally', () => {
  it('is the sum of the contract, however keys come and go', () => {
    const chance = new Chance(7);
    const live = new Map<string, number>();
    const tally = new KeyTally();
    for (let sequence = 1; sequence <= 3_000; sequence++) {
      const key = `ключ ${chance.below(200)}`;
      const old = live.get(key);
      if (old !== undefined) tally.remove(key, old);
      live.delete(key);
      if (chance.below(4) > 0) {
        live.set(key, sequence);
        tally.add(key, sequence);
      }
      if (sequence % 100 === 0) {
        expect(tally.toJSON()).toEqual({ records: live.size, digest: digestOf(live) });
      }
    }
  });

  it('adds up, is copied, and comes back from JSON', () => {
    const [one, other, both] = [new KeyTally(), new KeyTally(), new KeyTally()];
    for (let key = 0; key < 50; key++) {
      (key % 2 ? one : other).add(String(key), key);
      both.add(String(key), key);
    }
    const sum = KeyTally.of(one.toJSON());
    sum.merge(other);
    expect(sum.toJSON()).toEqual(both.toJSON());
    const copy = sum.copy();
    copy.add('more', 1);
    expect(sum.toJSON()).toEqual(both.toJSON());
  });

  it('of none is 0', () => {
    expect(new KeyTally().toJSON()).toEqual({ records: 0, digest: '0000000000000000' });
  });
});
