import { describe, expect, it } from 'vitest';
import { deadLetterCodec as codec } from '../../../src/schemas/events/own-records.ts';
import type { DeadLetter } from '../../../src/schemas/events/own-records.ts';

const letter: DeadLetter = {
  resource: 'orders',
  reason: 'no-key',
  message: 'the record has no order_number',
  raw: '{"a":1}',
  offset: 2_000,
  observed_at: 1_714_564_800_000,
  sha256: null,
  length: null,
  part: null,
  parts: null,
};

describe('deadLetterCodec', () => {
  it('reads what it wrote', () => {
    const part = { ...letter, offset: null, sha256: 'ab', length: 2 ** 40, part: 1, parts: 3 };

    expect(codec.decode(codec.encode(letter))).toEqual(letter);
    expect(codec.decode(codec.encode(part))).toEqual(part);
  });

  it('has the fields of the contract, in its order', () => {
    const { name, namespace, fields } = codec.schema;

    expect(`${namespace}.${name}`).toBe('cellarstream.DeadLetter');
    expect(fields.map((field) => field.name)).toEqual(Object.keys(letter));
    expect(fields.every(({ doc }) => doc)).toBe(true);
  });
});
