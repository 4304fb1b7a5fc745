import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import {
  decompress,
  MalformedBytes,
  MAX_UNPACKED_BYTES,
} from '../../../../src/kafka/fetch/codecs.ts';
import { mulberry32 } from '../../../support/chance.ts';
import { scaled } from '../../../support/scale.ts';

const [GZIP, SNAPPY, LZ4, ZSTD] = [1, 2, 3, 4];

/** What the files in `written` hold: noise, a long run, lines that come again, and the noise again. */
function content(): Buffer {
  let state = 1;
  const next = () => (state = (state * 48_271) % 0x7fffffff) & 0xff;
  const noise = Buffer.from(Array.from({ length: 700 }, next));
  const status = (n: number) => ['paid', 'shipped', 'open'][n % 3]!;
  const line = (n: number) => `order ${(n * 7919) % 1009} ${status(n)}\n`;
  const lines = Array.from({ length: 120 }, (_, n) => line(n)).join('');
  return Buffer.concat([noise, Buffer.alloc(70_000, 'a'), Buffer.from(lines.repeat(40)), noise]);
}

const written = (name: string) => readFileSync(new URL(`written/${name}`, import.meta.url));

/** `kafka.*` are by the Java client of Kafka 4.1.1, `raw.snappy` by snappy-java, `linked.lz4` by `lz4 -BD`. */
const FILES = [
  ['kafka.snappy', SNAPPY],
  ['raw.snappy', SNAPPY],
  ['kafka.lz4', LZ4],
  ['linked.lz4', LZ4],
  ['kafka.zstd', ZSTD],
] as const;

it.each(FILES)('reads what other clients write: %s', async (name, type) => {
  expect((await decompress(type, written(name))).equals(content())).toBe(true);
});

it.each([
  ['kafka.snappy', SNAPPY],
  ['kafka.lz4', LZ4],
  ['kafka.zstd', ZSTD],
] as const)('reads streams in a row: %s', async (name, type) => {
  const twice = Buffer.concat([written(name), written(name)]);
  expect(await decompress(type, twice)).toHaveLength(2 * content().length);
});

describe('damaged bytes are MalformedBytes', () => {
  const outcome = (type: number, bytes: Buffer) =>
    decompress(type, bytes).catch((error: unknown) => error);

  it.each([...FILES, ['gzip', GZIP] as const])('%s', async (name, type) => {
    const whole = name === 'gzip' ? gzipSync(content()) : written(name);
    const random = mulberry32(7);
    const below = (bound: number) => Math.floor(random() * bound);
    for (let n = 0; n < scaled(100, 1_000); n++) {
      const bytes = Buffer.from(n % 3 ? whole : whole.subarray(0, below(whole.length)));
      for (let flips = below(3); flips > 0; flips--) bytes[below(bytes.length)] = below(256);
      const read = await outcome(type, bytes);
      expect(Buffer.isBuffer(read) || read instanceof MalformedBytes).toBe(true);
    }
    expect(await outcome(type, whole.subarray(0, -20))).toBeInstanceOf(MalformedBytes);
    expect(await outcome(type, Buffer.alloc(0))).toBeInstanceOf(MalformedBytes);
  });

  it('of a codec that is not known', async () => {
    await expect(decompress(7, Buffer.alloc(9))).rejects.toThrow('codec 7, which is not known');
  });
});

describe('few bytes that claim a large content take no memory', () => {
  const int32 = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
  };
  const repeated = MAX_UNPACKED_BYTES / 255 + 2;
  const block = Buffer.concat([
    Buffer.of(0x1f, 97, 1, 0),
    Buffer.alloc(repeated, 0xff),
    Buffer.of(0),
  ]);
  const bombs: readonly (readonly [string, number, Buffer])[] = [
    ['gzip', GZIP, gzipSync(Buffer.alloc(MAX_UNPACKED_BYTES + 1))],
    [
      'snappy',
      SNAPPY,
      Buffer.concat([
        Buffer.of(0xff, 0xff, 0xff, 0x7f, 0, 97),
        ...Array<Buffer>(MAX_UNPACKED_BYTES / 64 + 1).fill(Buffer.of(0xfe, 1, 0)),
      ]),
    ],
    [
      'lz4',
      LZ4,
      Buffer.concat([
        int32(0x184d2204),
        Buffer.of(0x40, 0x40, 0),
        int32(block.length),
        block,
        int32(0),
      ]),
    ],
    [
      'zstd',
      ZSTD,
      Buffer.concat([
        Buffer.of(0x28, 0xb5, 0x2f, 0xfd, 0, 0x50),
        // Blocks of one byte 128 KiB times; the last has its lowest bit set.
        ...Array<Buffer>(MAX_UNPACKED_BYTES / 2 ** 17).fill(Buffer.of(0x02, 0, 0x10, 97)),
        Buffer.of(0x03, 0, 0x10, 97),
      ]),
    ],
    [
      'zstd with a large window',
      ZSTD,
      Buffer.of(0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0, ...Buffer.alloc(20)),
    ],
  ];
  it.each(bombs)('%s', async (_, type, bytes) => {
    await expect(decompress(type, bytes)).rejects.toThrow(
      new RegExp(`larger than ${MAX_UNPACKED_BYTES} bytes`),
    );
  });
});
