import { gunzipSync, gzipSync } from 'node:zlib';
import kafkajs from 'kafkajs';
import { expect, it, onTestFinished } from 'vitest';
import { useQuickGzip } from '../../src/sinks/gzip-codec.ts';

interface Codec {
  compress(encoder: { buffer: Buffer }): Promise<Buffer>;
  decompress(bytes: Buffer): Promise<Buffer>;
}

it('compresses for kafkajs what any gunzip reads, and reads what any gzip wrote', async () => {
  const codecs = kafkajs.CompressionCodecs as Record<number, () => Codec>;
  const { GZIP } = kafkajs.CompressionTypes;
  const before = codecs[GZIP]!;
  onTestFinished(() => void (codecs[GZIP] = before));
  useQuickGzip();
  expect(codecs[GZIP]).not.toBe(before);
  const codec = codecs[GZIP]!();
  // More than one piece comes out of the last.
  const noise = Buffer.from(Array.from({ length: 600_000 }, (_, nth) => (nth * nth * 31) >> 7));
  for (const bytes of [Buffer.alloc(0), Buffer.from('a'.repeat(10_000)), noise]) {
    const compressed = await codec.compress({ buffer: bytes });
    expect(gunzipSync(compressed).equals(bytes)).toBe(true);
    expect((await before().decompress(compressed)).equals(bytes)).toBe(true);
    expect((await codec.decompress(gzipSync(bytes))).equals(bytes)).toBe(true);
  }
});
