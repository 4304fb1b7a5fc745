import { describe, expect, it } from 'vitest';
import { frame, unframe } from '../../../src/schemas/registry/wire.ts';

describe('frame', () => {
  it('puts a zero byte and the id in front', () => {
    expect(frame(0x01020304, Buffer.of(9, 8))).toEqual(Buffer.of(0, 1, 2, 3, 4, 9, 8));
  });

  it('is undone by unframe, for ids up to 32 bits', () => {
    const message = frame(0xffff_ffff, Buffer.of(7));
    expect(unframe(message)).toEqual({ schemaId: 0xffff_ffff, payload: Buffer.of(7) });
    expect(unframe(frame(1, Buffer.alloc(0))).payload).toHaveLength(0);
  });
});

describe('unframe', () => {
  it('says why it refuses a message', () => {
    expect(() => unframe(Buffer.of(0, 0, 0, 1))).toThrow("not in Confluent's wire format: 4 bytes");
    expect(() => unframe(Buffer.from('{"a":1}'))).toThrow('the first byte is 123 instead of 0');
  });
});
