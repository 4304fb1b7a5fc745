import kafkajs from 'kafkajs';
import { afterEach, expect, it } from 'vitest';
import { fillKafkajsCodecs } from '../../../src/sinks/group/kafka-group.ts';

interface Codec {
  readonly decompress: (bytes: Buffer) => Promise<Buffer>;
  readonly compress: (encoder: unknown) => Promise<Buffer>;
}

const codecs: Record<number, (() => unknown) | undefined> = kafkajs.CompressionCodecs;
const { GZIP, Snappy, LZ4, ZSTD } = kafkajs.CompressionTypes;
const own = { ...codecs };
afterEach(() => void Object.assign(codecs, own));

it('lets kafkajs read snappy, lz4 and zstd, and leaves its gzip as it is', async () => {
  fillKafkajsCodecs();
  const snappy = codecs[Snappy]!() as Codec;
  expect(await snappy.decompress(Buffer.of(3, 8, 97, 98, 99))).toEqual(Buffer.from('abc'));
  await expect(snappy.compress({})).rejects.toThrow('only reads snappy');
  expect([LZ4, ZSTD].map((type) => typeof (codecs[type]!() as Codec).decompress)).toEqual([
    'function',
    'function',
  ]);
  expect(codecs[GZIP]).toBe(own[GZIP]);
});

it('leaves a codec alone that the program has set', () => {
  const theirs = () => ({ decompress: (bytes: Buffer) => bytes });
  codecs[ZSTD] = theirs;
  fillKafkajsCodecs();
  expect(codecs[ZSTD]).toBe(theirs);
});
