import { randomBytes } from 'node:crypto';
import type { Message } from '../../../src/sinks/sink.ts';

/** Where a varint grows by a byte: as Kafka writes lengths (twice the number), and as it writes counts. */
const EDGES = [0, 1, 63, 64, 127, 128, 8_191, 8_192, 16_383, 16_384];
/** Of the values of {@link large}: together more than two batches. */
const LARGE_BYTES = 60_000;

type Content = Omit<Message, 'topic'>;

/** Bytes that no compression makes smaller; without ends of lines, so that tools print one a record. */
function incompressible(length: number): Buffer {
  const bytes = randomBytes(length);
  for (const [at, byte] of bytes.entries()) if (byte === 0x0a || byte === 0x0d) bytes[at] = 0x20;
  return bytes;
}

/** What encoders get wrong: one record each. */
export function odd(): Content[] {
  const value = Buffer.from('v');
  return [
    { key: 'tombstone', value: null },
    { key: 'tombstone with a header', value: null, headers: { why: 'deleted' } },
    { key: 'empty value', value: Buffer.alloc(0) },
    { key: null, value: Buffer.from('no key') },
    { key: null, value: Buffer.from('no key, another'), headers: { a: '1' } },
    { key: 'Grüner Veltliner 🍷', value: Buffer.from('Größe: 0,75 l — 🍷') },
    {
      key: 'headers',
      value,
      headers: { ce_id: '7f', empty: '', größe: 'fünf Liter 🍷', last: 'x'.repeat(300) },
    },
    {
      key: '64 headers',
      value,
      headers: Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`h${n}`, `${n}`])),
    },
    ...EDGES.map((length) => ({ key: 'k'.repeat(length), value: Buffer.from(`of ${length}`) })),
    ...EDGES.map((length) => ({ key: `value of ${length}`, value: incompressible(length) })),
    { key: 'compresses well', value: Buffer.alloc(500_000, 'a') },
    { key: 'compresses badly', value: incompressible(500_000) },
  ];
}

/** Small ones of keys of their own. */
export function many(count: number, name: string): Content[] {
  return Array.from({ length: count }, (_, n) => ({
    key: `${name}-${n}`,
    value: Buffer.from(`{"n":${n}}`),
    headers: { ce_id: `${name}/${n}` },
  }));
}

/** Of one key, and more than a batch may hold. */
export function large(count: number): Content[] {
  return Array.from({ length: count }, () => ({
    key: 'large',
    value: incompressible(LARGE_BYTES),
  }));
}
