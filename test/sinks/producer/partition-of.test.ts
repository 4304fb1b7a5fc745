import kafkajs from 'kafkajs';
import type { PartitionMetadata } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { partitionOf } from '../../../src/sinks/producer/record-batch.ts';
import { mulberry32 } from '../../support/chance.ts';

/** By key, the partition of six that Java's client takes: murmur2 as in its own UtilsTest. */
const JAVA: readonly (readonly [key: string, partition: number])[] = [
  ['21', 0],
  ['foobar', 0],
  ['a-little-bit-long-string', 2],
  ['a-little-bit-longer-string', 5],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', 5],
  ['abc', 3],
];

/** Letters of one to four bytes, and what is no character at all. */
const LETTERS = ['a', '0', '/', 'é', 'ß', '葡', '🍷', '\u0000', '\ud800'];

const partitioner = kafkajs.Partitioners.DefaultPartitioner();
const kafkajsOf = (key: string | Buffer, count: number): number => {
  const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({
    partitionId,
  })) as PartitionMetadata[];
  return partitioner({ topic: 't', message: { key, value: null }, partitionMetadata });
};

describe('partitionOf', () => {
  it.each(JAVA)("puts %s where Java's client does", (key, partition) => {
    expect(partitionOf(key, 6)).toBe(partition);
    expect(partitionOf(Buffer.from(key), 6)).toBe(partition);
  });

  it("puts keys of every length and alphabet where kafkajs' partitioner does", () => {
    const random = mulberry32(1);
    const below = (bound: number) => Math.floor(random() * bound);
    for (let n = 0; n < 3_000; n++) {
      const letters = Array.from({ length: below(40) }, () => LETTERS[below(LETTERS.length)]!);
      const key = letters.join('');
      const count = 1 + below(50);
      expect(partitionOf(key, count), JSON.stringify(key)).toBe(kafkajsOf(key, count));
    }
  });

  it("puts keys that are no text where kafkajs' partitioner does", () => {
    const random = mulberry32(2);
    for (let length = 0; length < 300; length++) {
      const key = Buffer.from(Array.from({ length }, () => random() * 256));
      expect(partitionOf(key, 7)).toBe(kafkajsOf(key, 7));
    }
  });
});
