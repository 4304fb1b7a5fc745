import { firstValueFrom, map, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { Confirmations, MAX_WAITING } from '../../../src/streams/diff/confirmations.ts';
import type { ConfirmationsOptions, Sighting } from '../../../src/streams/diff/confirmations.ts';
import { diff } from '../../../src/streams/diff/diff.ts';
import { MAX_LAG_MS } from '../../../src/streams/http/response-age.ts';
import type { ImageCodec } from '../../../src/streams/records/page-record.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { personalFields } from '../../../src/streams/records/personal-fields.ts';
import type { PersonalFields } from '../../../src/streams/records/personal-fields.ts';
import { keyRecords } from '../../../src/streams/records/records.ts';
import { Stamps } from '../../../src/streams/records/stamps.ts';

const [OLDER, PUBLISHED] = [0, 5_000];
const codec: ImageCodec = { encode: () => IMAGE, decode: () => ({}) };
const replaced = (bytes: Buffer) => ({ bytes, codec });
const IMAGE = Buffer.from('the image before');

/** Confirmations, and sightings of a record at times that are given in ms. */
function sightings(options: Omit<ConfirmationsOptions, 'now'> = {}) {
  let now = 0;
  const confirmations = new Confirmations({ now: () => now, ...options });
  type Times = Partial<Sighting> & { readonly staleMs?: number };
  /** Reads the record at a time; by default in an older state than the published one. */
  const unconfirmed = (at: number, { staleMs = 0, ...rest }: Times = {}) => {
    now = at;
    return confirmations.unconfirmed({
      key: 'k',
      updatedAt: OLDER,
      age: { asOf: at - staleMs, staleMs },
      published: PUBLISHED,
      equals: (image) => image.bytes.equals(IMAGE),
      isHiddenAnew: () => false,
      ...rest,
    });
  };
  return {
    confirmations,
    unconfirmed,
    /** Whether the record is held back when it is read at a time. */
    isHeld: (at: number, more?: Times) => unconfirmed(at, more) !== undefined,
    at: (time: number) => void (now = time),
  };
}

describe('a record with an earlier updated_at than the published one', () => {
  it('is held until a request that was sent long enough after the first sighting shows it again', () => {
    const { isHeld, confirmations } = sightings();
    expect(isHeld(100)).toBe(true);
    expect(confirmations.isWaiting('k')).toBe(true);
    expect(isHeld(100 + MAX_LAG_MS - 1)).toBe(true);
    expect(isHeld(100 + MAX_LAG_MS)).toBe(false);
    expect(confirmations.isAnyWaiting).toBe(false);
  });

  it('is not confirmed by an answer that arrives late enough, and was made before', () => {
    const { isHeld } = sightings();
    expect(isHeld(0)).toBe(true);
    expect(isHeld(MAX_LAG_MS + 5_000, { staleMs: 6_000 })).toBe(true);
  });

  it('is not confirmed by a replica that catches up: each state waits for itself', () => {
    const { isHeld } = sightings();
    for (let at = 0; at < 60_000; at += 8_000) {
      expect(isHeld(at, { updatedAt: OLDER + at / 20 })).toBe(true);
    }
  });

  it('is not confirmed where the published image was shown in between', () => {
    const { isHeld, confirmations } = sightings();
    for (let at = 0; at < 120_000; at += 4_000) {
      expect(isHeld(at)).toBe(true);
      confirmations.agreed('k', { asOf: at + 2_000, staleMs: 0 });
    }
  });

  it('is confirmed even if an answer that was asked for before the first sighting disagrees', () => {
    const { isHeld, confirmations } = sightings();
    expect(isHeld(1_000)).toBe(true);
    confirmations.agreed('k', { asOf: 999, staleMs: 0 });
    expect(isHeld(1_000 + MAX_LAG_MS)).toBe(false);
  });

  it('stays held where more wait than there is room for', () => {
    const { isHeld } = sightings();
    for (let k = 1; k < MAX_WAITING; k++) isHeld(0, { key: `other ${k}` });
    expect(isHeld(0, { key: 'another' })).toBe(true);
    expect(isHeld(0)).toBe(true);
    expect(isHeld(60_000)).toBe(true);
    expect(isHeld(60_000, { key: 'another' })).toBe(false); // and there is room again
    expect(isHeld(60_001)).toBe(true);
    expect(isHeld(60_001 + MAX_LAG_MS)).toBe(false);
  });

  it('is reported as a reversion once it begins to wait, not at each read for which there is no room', () => {
    const { unconfirmed, isHeld } = sightings();
    for (let k = 1; k <= MAX_WAITING; k++) isHeld(0, { key: `other ${k}` });
    expect([unconfirmed(0), unconfirmed(1)].map((one) => one?.isReversion)).toEqual([false, false]);
    expect(isHeld(60_000, { key: 'other 1' })).toBe(false); // and there is room
    const reads = [unconfirmed(60_000), unconfirmed(60_001)];
    expect(reads.map((one) => one?.isReversion)).toEqual([true, false]);
  });
});

describe('a record with the same updated_at as the published one, or with none', () => {
  const stamps = [
    { updatedAt: PUBLISHED, published: PUBLISHED },
    { updatedAt: null, published: null },
    { updatedAt: null, published: PUBLISHED },
    { updatedAt: PUBLISHED, published: null },
  ];

  it.each(stamps)('is published at once: $updatedAt, $published', (stamp) => {
    const { isHeld } = sightings();
    expect(isHeld(0, stamp)).toBe(false);
  });

  it.each(stamps)('is held where it is what was replaced a moment ago: %o', (stamp) => {
    const { isHeld, confirmations } = sightings();
    confirmations.published('k', replaced(IMAGE));
    const other = Buffer.from('another state');
    expect(isHeld(1_000, { ...stamp, equals: (image) => image.bytes.equals(other) })).toBe(false);
    expect(isHeld(1_000, stamp)).toBe(true);
    expect(isHeld(MAX_LAG_MS - 1, stamp)).toBe(true);
    expect(isHeld(MAX_LAG_MS + 1, { ...stamp, staleMs: 2 })).toBe(true);
    expect(isHeld(MAX_LAG_MS + 1, stamp)).toBe(false); // a replica shows what came after it by then
  });

  it.each(stamps)('is held where it comes from a cache, until that is read again: %o', (stamp) => {
    const { isHeld } = sightings();
    const staleMs = MAX_LAG_MS + 1;
    expect(isHeld(0, { ...stamp, staleMs })).toBe(true);
    expect(isHeld(MAX_LAG_MS + 1_000, { ...stamp, staleMs: staleMs + 11_000 })).toBe(true);
    expect(isHeld(2 * MAX_LAG_MS + 1, { ...stamp, staleMs })).toBe(false);
  });

  it('is remembered for a few images back, and no longer than a replica lags', () => {
    const { isHeld, confirmations, at } = sightings();
    confirmations.published('k', replaced(IMAGE));
    at(1_000);
    confirmations.published('k', replaced(Buffer.from('the next one')));
    expect(isHeld(2_000, { updatedAt: null })).toBe(true);
    at(MAX_LAG_MS + 500);
    confirmations.published('k', replaced(Buffer.from('one more')));
    expect(isHeld(MAX_LAG_MS + 600, { updatedAt: null })).toBe(false);
  });
});

describe('a record with a later updated_at than the published one', () => {
  it('is published at once, from a cache too, and forgets what waits', () => {
    const { isHeld, confirmations } = sightings();
    expect(isHeld(0)).toBe(true);
    expect(isHeld(1, { updatedAt: PUBLISHED + 1, staleMs: 300_000 })).toBe(false);
    expect(confirmations.isAnyWaiting).toBe(false);
  });
});

describe('a record that was deleted', () => {
  const absent = { published: undefined };

  it.each([OLDER, PUBLISHED, null])('is held when it shows again with %s', (updatedAt) => {
    const { isHeld, confirmations } = sightings();
    confirmations.deleted('k', PUBLISHED);
    expect(isHeld(86_400_000, { ...absent, updatedAt })).toBe(true);
    expect(isHeld(86_400_000 + MAX_LAG_MS, { ...absent, updatedAt })).toBe(false);
  });

  it('is new at once with a later updated_at, and so is one that was never seen', () => {
    const { isHeld, confirmations } = sightings();
    confirmations.deleted('k', PUBLISHED);
    expect(isHeld(0, { ...absent, updatedAt: PUBLISHED + 1 })).toBe(false);
    expect(isHeld(0, { ...absent, key: 'never seen', staleMs: 300_000 })).toBe(false);
  });

  it('is held too if it was published again, as that event may not be committed', () => {
    const { isHeld, confirmations } = sightings();
    confirmations.deleted('k', PUBLISHED);
    confirmations.published('k', undefined);
    expect(isHeld(0, absent)).toBe(true);
  });
});

describe('after a restart, which forgets what was replaced and deleted', () => {
  const inherited = { updates: true, deletions: true, newestStamp: PUBLISHED };

  it.each([PUBLISHED, null])('a state with the same updated_at (%s) waits', (updatedAt) => {
    const same = { updatedAt, published: updatedAt };
    const { isHeld } = sightings({ inherited });
    expect(isHeld(500, same)).toBe(true);
    expect(isHeld(500 + MAX_LAG_MS, same)).toBe(false);
  });

  it('such a state is published at once when a replica can show nothing older than the restart', () => {
    const same = { updatedAt: PUBLISHED };
    expect(sightings({ inherited }).isHeld(MAX_LAG_MS, same)).toBe(false);
    expect(sightings().isHeld(0, same)).toBe(false);
  });

  it('the same state with other fields hidden than before the restart does not wait', async () => {
    const masked = personalFields([{ path: ['class'], method: 'mask' }]);
    const stored = { id: 1, class: 'in full' };
    const readAgain = (json: JsonObject, personal?: PersonalFields) =>
      firstValueFrom(
        of({ ...keyRecords([json], keyOfFields(['id'])), age: { asOf: 0, staleMs: 0 } }).pipe(
          map(({ keyed, age }) => ({ records: keyed, age })),
          diff({
            images: { get: () => Buffer.from(canonicalJson(stored)) },
            confirmations: new Confirmations({ now: () => 0, inherited }),
            hideStored: personal?.hideStored,
          }),
          map(({ unconfirmed }) => unconfirmed.length),
        ),
      );
    expect(await readAgain({ id: 1, class: '***' }, masked)).toBe(0);
    expect(await readAgain({ id: 1, class: '***', more: true }, masked)).toBe(1);
    expect(await readAgain({ id: 1, class: 'another' })).toBe(1);
  });

  it('a later updated_at does not wait', () => {
    const { isHeld } = sightings({ inherited });
    expect(isHeld(0, { updatedAt: PUBLISHED + 1 })).toBe(false);
  });

  it('an unknown record does not wait if its updated_at is later than all that was published', () => {
    const { isHeld } = sightings({ inherited });
    expect(isHeld(0, { published: undefined, updatedAt: PUBLISHED + 1 })).toBe(false);
  });

  it.each([PUBLISHED, null])(
    'any other unknown record (updated_at %s) waits, as it may have been deleted',
    (updatedAt) => {
      const unknown = { published: undefined, updatedAt };
      const { isHeld } = sightings({ inherited });
      expect(isHeld(500, unknown)).toBe(true);
      expect(isHeld(500 + MAX_LAG_MS, unknown)).toBe(false);
      expect(isHeld(MAX_LAG_MS, { ...unknown, key: 'shown as it was after the restart' })).toBe(
        false,
      );
      const snapshot = sightings({ inherited: { ...inherited, deletions: false } });
      expect(snapshot.isHeld(500, unknown)).toBe(false);
    },
  );

  it('is not reported as a reversion, unless it equals a replaced image; each reversion is reported once', () => {
    const found: (boolean | undefined)[] = [];
    const { confirmations } = sightings({ inherited });
    const sighting = (key: string, more: Partial<Sighting>) =>
      confirmations.unconfirmed({
        ...{ key, updatedAt: null, published: null, age: { asOf: 0, staleMs: 0 } },
        ...{ equals: (image) => image.bytes.equals(IMAGE), isHiddenAnew: () => false, ...more },
      })?.isReversion;
    confirmations.published('toggled', replaced(IMAGE));
    for (const key of ['new', 'changed', 'toggled', 'toggled']) {
      found.push(sighting(key, { published: key === 'new' ? undefined : null }));
    }
    expect(found).toEqual([false, false, true, false]);
  });

  it('so does one from a cache that was made within ten seconds of the restart', () => {
    const cached = { published: undefined, staleMs: MAX_LAG_MS };
    const { isHeld } = sightings({ inherited });
    expect(isHeld(2 * MAX_LAG_MS - 1, cached)).toBe(true);
    expect(isHeld(2 * MAX_LAG_MS, { ...cached, key: 'another' })).toBe(false);
  });
});

it("which of two states is older is read from the list's own fields, also after a deletion", async () => {
  const stamps = new Stamps({ updated: ['modified'] });
  const at = (seconds: number) => new Date(seconds * 1_000).toISOString();
  const confirmations = new Confirmations({ now: () => 0 });
  const images = new Map<string, Buffer>();
  const isHeld = async (record: JsonObject | undefined) => {
    const { keyed } = keyRecords(record ? [record] : [], keyOfFields(['id']), stamps);
    const read = { records: keyed, gone: record ? [] : ['1'], age: { asOf: 0, staleMs: 0 } };
    const found = await firstValueFrom(of(read).pipe(diff({ images, confirmations, stamps })));
    for (const { key, images: image } of found.changes) {
      if (image.after) images.set(key, image.after);
      else images.delete(key);
    }
    return found.unconfirmed.length > 0;
  };
  // `updated_at` says the opposite.
  expect(await isHeld({ id: 1, modified: at(5), updated_at: at(9) })).toBe(false);
  expect(await isHeld({ id: 1, modified: at(7), updated_at: at(1) })).toBe(false);
  expect(await isHeld({ id: 1, modified: at(6), updated_at: at(10) })).toBe(true);
  expect(await isHeld(undefined)).toBe(false);
  expect(await isHeld({ id: 1, modified: at(7), updated_at: at(11) })).toBe(true);
  expect(await isHeld({ id: 1, modified: at(8), updated_at: at(1) })).toBe(false);
});
