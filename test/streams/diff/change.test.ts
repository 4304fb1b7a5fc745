import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { withHiddenFields } from '../../../src/streams/diff/change.ts';
import type { Change } from '../../../src/streams/diff/change.ts';
import { MASK, personalFields } from '../../../src/streams/records/personal-fields.ts';

describe('hidingChange', () => {
  const codec = {
    encode: (record: JsonObject) => Buffer.from(JSON.stringify(record)),
    decode: (bytes: Buffer) => JSON.parse(bytes.toString()) as JsonObject,
  };
  const [raw, shown] = [
    { id: 1, email: 'j@x' },
    { id: 1, email: MASK },
  ];
  const change = (before: JsonObject | null, after: JsonObject | null): Change => ({
    key: '1',
    op: 'u',
    before,
    after,
    images: { before: before && codec.encode(before), after: after && codec.encode(after) },
    changed: ['email'],
    updatedAt: 5,
    updatedBefore: 3,
  });
  const mask = personalFields([{ path: ['email'], method: 'mask' }]);

  it.each([
    ['a change', raw, shown, shown, shown],
    ['a deletion', raw, null, shown, null],
    ['what is published again', raw, raw, shown, shown],
    ['a creation', null, shown, null, shown],
  ])('leaves nothing personal in the images of %s', (_, before, after, then, now) => {
    expect(withHiddenFields(change(before, after), codec, mask)).toEqual(change(then, now));
  });

  it('leaves a change as it is that has nothing personal in it', () => {
    const plain = change(shown, null);
    const { images } = withHiddenFields(plain, codec, mask);
    expect(images.before).toBe(plain.images.before);
    expect(withHiddenFields(plain, codec)).toBe(plain);
  });

  it('shows no record in clear of which nothing is left', () => {
    // By its type something always is.
    const nothing = { hide: () => null, hideStored: () => null as unknown as JsonObject };
    const { before, images } = withHiddenFields(change(raw, null), codec, nothing);
    expect([before, String(images.before)]).toEqual([null, 'null']);
  });
});
