import avro from 'avsc';
import { describe, expect, it } from 'vitest';
import { asBuffer, avroWriter } from '../../../src/schemas/avro/avro-bytes.ts';

describe('avroWriter', () => {
  it('writes what avsc writes, whatever came before', () => {
    const type = avro.Type.forSchema('string');
    const write = avroWriter(type);
    // Letters of two bytes each: avsc writes past the end of its buffer before it sees it is short.
    const lengths = [0, 3, 40_000, 64, 8_190, 8_191, 8_192, 1_000_000, 1];
    const texts = lengths.map((length) => 'é'.repeat(length));
    const written = texts.map((text) => write(text));

    expect(written.every((bytes, n) => bytes.equals(type.toBuffer(texts[n])))).toBe(true);
  });
});

it('asBuffer views the same bytes', () => {
  const bytes = new Uint8Array([0, 1, 2, 3]).subarray(1, 3);

  expect(asBuffer(bytes)).toEqual(Buffer.of(1, 2));
  expect(asBuffer(bytes).buffer).toBe(bytes.buffer);
});
