import { createHash } from 'node:crypto';
import type { CheckedEvent } from '../../src/consumers/copy-check.ts';
import { Chance } from '../support/chance.ts';

/** A record's key, and the sequence of the event that it has. */
export type Rows = ReadonlyMap<string, number>;

const PARTITIONS = 2;

/** The topic of a list, written by chance; and what is true of it, worked out from all events each time. */
export class WrittenList {
  readonly chance: Chance;
  readonly events: readonly CheckedEvent[];

  constructor(seed: number) {
    this.chance = new Chance(seed);
    const keys = Array.from({ length: 3 + this.chance.below(12) }, (_, n) => `ключ ${seed} ${n}`);
    const alive = new Set<string>();
    const ends = [0, 0];
    const events: CheckedEvent[] = [];
    let sequence = this.chance.below(1_000);
    const length = 4 + this.chance.below(60);
    const write = (key: string, op: 'c' | 'u' | 'd' | undefined) => {
      const partition = keys.indexOf(key) % PARTITIONS;
      const offset = ends[partition]! + (this.chance.is(0.2) ? 2 : 0); // markers are between
      ends[partition] = offset + 1;
      const event = op === undefined ? null : { op, source: { sequence: (sequence += 1) } };
      events.push({ partition, offset, key, event });
    };
    while (events.length < length) {
      const key = this.chance.pick(keys);
      if (!alive.has(key)) {
        alive.add(key);
        write(key, 'c');
      } else if (this.chance.is(0.3)) {
        alive.delete(key);
        write(key, 'd');
        write(key, undefined);
      } else write(key, 'u');
    }
    this.events = events;
  }

  /** The live records when so many events had been written; of one partition, or of all. */
  rowsAt(count: number, partition?: number): Map<string, number> {
    const rows = new Map<string, number>();
    for (const one of this.events.slice(0, count)) {
      if (partition !== undefined && one.partition !== partition) continue;
      if (!one.event || one.event.op === 'd') rows.delete(one.key);
      else rows.set(one.key, one.event.source.sequence);
    }
    return rows;
  }

  /** By partition the offset behind the last of so many events. */
  positionsAt(count: number): Map<number, number> {
    const positions = new Map([...Array(PARTITIONS).keys()].map((at) => [at, 0]));
    for (const { partition, offset } of this.events.slice(0, count)) {
      positions.set(partition, offset + 1);
    }
    return positions;
  }

  /** A moment at which no deletion is without its tombstone. */
  moment(from = 0): number {
    let count = from + this.chance.below(this.events.length + 1 - from);
    if (this.events[count]?.event === null) count += 1;
    return count;
  }
}

/** Count and digest as the contract has them, in the plainest way. */
export function tallyOf(rows: Rows): { records: number; digest: string } {
  let sum = 0n;
  for (const [key, sequence] of rows) {
    const text = Buffer.concat([Buffer.from(key), Buffer.of(10), Buffer.from(String(sequence))]);
    sum += createHash('sha256').update(text).digest().readBigUInt64BE();
  }
  const digest = BigInt.asUintN(64, sum).toString(16).padStart(16, '0');
  return { records: rows.size, digest };
}
