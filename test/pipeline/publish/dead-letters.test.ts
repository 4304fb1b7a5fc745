import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { deadLetterMessages } from '../../../src/pipeline/publish/dead-letters.ts';
import { deadLetterCodec } from '../../../src/schemas/events/own-records.ts';
import { unframe } from '../../../src/schemas/registry/wire.ts';
import type { RejectedJson } from '../../../src/streams/records/records.ts';

const to = { topic: 'wine.dead-letters', schemaId: 7 };

describe('deadLetterMessages', () => {
  const letters = (raw: string) =>
    deadLetterMessages(
      { reason: 'too-large', raw, key: 'k' },
      { to, resource: 'orders', offset: 90, maxBytes: 800_000, now: 9 },
    ).map(({ key, value }) => ({ key, ...deadLetterCodec.decode(unframe(value!).payload) }));

  it('is one message with the JSON as it came', () => {
    expect(letters('é')).toEqual([
      expect.objectContaining({
        key: 'k',
        reason: 'too-large',
        raw: '"é"',
        offset: 90,
        parts: null,
      }),
    ]);
  });

  it('is the text of what is no JSON, as it came, with its own place in the list', () => {
    const [message] = deadLetterMessages(
      { reason: 'unreadable', raw: '{"id":NaN}', key: null, offset: 97 },
      { to, resource: 'orders', offset: 90, maxBytes: 800_000, now: 9 },
    );
    expect(deadLetterCodec.decode(unframe(message!.value!).payload)).toMatchObject({
      reason: 'unreadable',
      raw: '{"id":NaN}',
      offset: 97,
      message: expect.stringContaining('not JSON') as unknown,
    });
  });

  it('says why in words, for every reason, and has the key where there is one', () => {
    const letter = (reason: RejectedJson['reason'], key: string | null) => {
      const messages = deadLetterMessages(
        { reason, raw: {}, key },
        { to, resource: 'orders', offset: 90, maxBytes: 800_000, now: 9 },
      );
      return {
        key: messages[0]!.key,
        ...deadLetterCodec.decode(unframe(messages[0]!.value!).payload),
      };
    };
    const said = [
      letter('not-an-object', null),
      letter('no-key', null),
      letter('conflicting-duplicate', '100234'),
      letter('too-large', '100234'),
    ];
    expect(said.map(({ key, reason, message }) => [key, reason, message])).toEqual([
      [null, 'not-an-object', expect.stringContaining('not an object')],
      [null, 'no-key', expect.stringContaining('no usable key')],
      ['100234', 'conflicting-duplicate', expect.stringContaining('same page')],
      ['100234', 'too-large', expect.stringContaining('exceeds the maximum message size')],
    ]);
  });

  it('is numbered parts of a text that is too long, each of which a message holds', () => {
    const raw = `${'🍷 wine, '.repeat(80_000)}\n`;
    const parts = letters(raw);
    const text = parts.map((part) => part.raw).join('');
    expect(JSON.parse(text)).toBe(raw);
    expect(parts.map(({ part }) => part)).toEqual(parts.map((_, place) => place + 1));
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) {
      expect(Buffer.byteLength(part.raw)).toBeLessThan(900_000);
      expect(part).toMatchObject({
        parts: parts.length,
        length: Buffer.byteLength(text),
        sha256: createHash('sha256').update(text).digest('hex'),
      });
    }
  });
});
