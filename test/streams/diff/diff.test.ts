import { map, Subject } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { parseJson, stringifyJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { statusChanges } from '../../../src/streams/diff/status-changes.ts';
import { diff } from '../../../src/streams/diff/diff.ts';
import type { Change } from '../../../src/streams/diff/change.ts';
import { instantOf } from '../../../src/schemas/avro/instant.ts';
import type { DiffOptions, Difference, ReadRecords } from '../../../src/streams/diff/diff.ts';
import { NewestReads } from '../../../src/streams/diff/newest.ts';
import { Body } from '../../../src/streams/http/body.ts';
import { PageRecord, PUBLISHED } from '../../../src/streams/records/page-record.ts';
import type {
  KeyedRecord,
  RecordFacts,
  RecordImage,
} from '../../../src/streams/records/page-record.ts';
import { keyedRecord, WINE_STAMPS } from '../../support/records.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { busyClock } from '../../support/busy-clock.ts';
import { ORDERS } from '../../support/orders.ts';

const record = (fields: JsonObject): KeyedRecord => keyedRecord(stringifyJson(fields.n!), fields);
const encodedAs = (json: JsonObject): RecordImage => ({
  kind: 'encoded',
  bytes: Buffer.from(JSON.stringify(json)),
  codec: { encode: () => expect.fail('encoded again'), decode: () => expect.fail('decoded') },
});
/** A record that fails when it is parsed. */
const unparsed = (key: string, facts: RecordFacts) =>
  PageRecord.inBytes(
    { page: new Body(Buffer.from('?')), at: 0, end: 1 },
    { ...facts, key },
  ) as KeyedRecord;
const page = (...records: JsonObject[]): ReadRecords => ({ records: records.map(record) });

/** What each of these reads brings, one after the other. */
function differences(
  reads: readonly ReadRecords[],
  options: DiffOptions = {},
): Difference<ReadRecords>[] {
  const found: Difference<ReadRecords>[] = [];
  const scheduler = virtualTime();
  scheduler.run(({ hot }) => {
    const marbles = reads.map((_, k) => String.fromCharCode(97 + k)).join('');
    const values = Object.fromEntries(reads.map((read, k) => [marbles[k]!, read]));
    hot(marbles, values)
      .pipe(diff(options))
      .subscribe((difference) => found.push(difference));
  });
  return found;
}

/** In short: op, key and changed paths of each change. */
const inShort = ({ changes }: Difference<ReadRecords>) =>
  changes.map(({ op, key, changed }) => [op, key, ...changed].join(' '));

/** A change with all that is worked out when somebody asks for it. */
const whole = ({ key, op, before, after, images, changed, updatedAt }: Change): Change => ({
  ...{ key, op, before, after, images, changed, updatedAt },
});

describe('diff', () => {
  it('maps each page to what it brought, as soon as it is there', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const pages = {
        a: page({ n: 1, s: 'x' }, { n: 2 }),
        b: page({ n: 1, s: 'y' }, { n: 2 }),
      };
      const source = cold('a--b-b|', pages);
      const subs = '       ^-----!';
      const expected = '   x--y-z|';
      const values = {
        x: ['c 1', 'c 2', 'unchanged 0'],
        y: ['u 1 s', 'unchanged 1'],
        z: ['unchanged 2'],
      };
      const seen = source.pipe(
        diff(),
        map((found) => [...inShort(found), `unchanged ${found.unchanged}`]),
      );
      expectObservable(seen).toBe(expected, values);
      expectSubscriptions(source.subscriptions).toBe(subs);
    });
  });

  it('mirrors never, empty, error and an early unsubscription', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const endless = cold<ReadRecords>('-');
      expectObservable(endless.pipe(diff()), '^-!').toBe('-');
      expectSubscriptions(endless.subscriptions).toBe('  ^-!');
      expectObservable(cold<ReadRecords>('--|').pipe(diff())).toBe('--|');
      expectObservable(cold<ReadRecords>('--#').pipe(diff())).toBe('--#');
    });
  });

  it('gives a change that JSON.stringify has all of', () => {
    const [then, now] = ['2026-03-05T12:00:00.000Z', '2026-03-05T13:00:00.000Z'];
    const reads = [page({ n: 1, updated_at: then }), page({ n: 1, updated_at: now })];
    const [, second] = differences(reads, { stamps: WINE_STAMPS });
    const [change] = second!.changes;
    const all = { ...whole(change!), updatedBefore: Date.parse(then) };
    expect(JSON.parse(JSON.stringify(change))).toEqual(JSON.parse(JSON.stringify(all)));
  });

  it('gives a change whole: both images, their bytes, the paths and the time', () => {
    const before = { n: 1, s: 'x', updated_at: '2026-03-05T12:00:00.000Z' };
    const after = { n: 1, s: 'y', updated_at: '2026-03-05T13:00:00.000Z' };
    const reads = [page(before), page(after)];
    const [first, second] = differences(reads);
    const bytes = (image: JsonObject) => Buffer.from(stringifyJson(image));
    expect(first!.read).toBe(reads[0]);
    expect(first!.changes.map(whole)).toEqual([
      {
        key: '1',
        op: 'c',
        before: null,
        after: before,
        images: { before: null, after: bytes(before) },
        changed: [],
        updatedAt: Date.UTC(2026, 2, 5, 12),
      },
    ]);
    expect(second!.changes.map(whole)).toEqual([
      {
        key: '1',
        op: 'u',
        before,
        after,
        images: { before: bytes(before), after: bytes(after) },
        changed: ['s', 'updated_at'],
        updatedAt: Date.UTC(2026, 2, 5, 13),
      },
    ]);
  });

  it('calls a record without an image new or initial snapshot, as it is told', () => {
    const isNew = ({ json }: KeyedRecord) => json.fresh === true;
    const reads = [page({ n: 1, fresh: true }, { n: 2 }), page({ n: 1 }, { n: 2, fresh: true })];
    expect(differences(reads, { isNew }).map(inShort)).toEqual([
      ['c 1', 'r 2'],
      ['u 1 fresh', 'u 2 fresh'],
    ]);
  });

  it('takes what a record says of itself, which is not parsed for it', () => {
    const isNew = ({ createdAt }: KeyedRecord) => createdAt === 2;
    const kept = (n: number) =>
      unparsed(String(n), { image: encodedAs({ n }), updatedAt: n, createdAt: n });
    const [first] = differences([{ records: [kept(1), kept(2)] }], { isNew });
    expect(first!.changes.map(({ key, op, updatedAt }) => [key, op, updatedAt])).toEqual([
      ['1', 'r', 1],
      ['2', 'c', 2],
    ]);
  });

  it('finds no change in another order of keys, at any depth', () => {
    const reads = [
      page({ n: 1, a: { x: 1, y: [{ p: 1, q: 2 }] } }),
      page({ a: { y: [{ q: 2, p: 1 }], x: 1 }, n: 1 }),
    ];
    expect(differences(reads).map(inShort)).toEqual([['c 1'], []]);
  });

  it('finds the change between null and absent, and of a number that no double holds', () => {
    const exact = (text: string) => page(parseJson(`{"n":1,"v":${text}}`) as JsonObject);
    const reads = [
      page({ n: 1, v: null }),
      page({ n: 1 }),
      exact('12345678901234567890'),
      exact('12345678901234567891'),
    ];
    expect(differences(reads).map(inShort)).toEqual([['c 1'], ['u 1 v'], ['u 1 v'], ['u 1 v']]);
  });

  it('goes by the bytes of the codec: what it holds to be equal is no change', () => {
    const codec: DiffOptions['codec'] = {
      encode: ({ n, s }) => Buffer.from(JSON.stringify({ n, s: (s as string).toLowerCase() })),
      decode: (bytes) => JSON.parse(bytes.toString()) as JsonObject,
    };
    const reads = [
      page({ n: 1, s: 'a', t: 'X' }),
      page({ n: 1, s: 'A', t: 'Y' }),
      page({ n: 1, s: 'B', t: 'Z' }),
    ];
    const found = differences(reads, { codec });
    expect(found.map(inShort)).toEqual([['c 1'], [], ['u 1 s']]); // t is no path: it is not held
    expect(found[2]!.changes[0]).toMatchObject({
      before: { n: 1, s: 'a' },
      after: { n: 1, s: 'b' },
    });
  });

  it.each(['2024-05-01T12:34:56Z', '2024-05-01T12:34:56.000+00:00', '2024-05-01T12:34:56.0001Z'])(
    'knows an order edit again whose time came as %s',
    (created_at) => {
      const order = (notes: string) => ({
        n: 1,
        order_edit: [{ created_at, status: 'open', notes }],
      });
      const codec = new RecordCodec(orderSchema);
      const found = differences([page(order('a')), page(order('b'))], { codec });
      const [change] = found[1]!.changes;
      expect(statusChanges(change!, ORDERS)).toEqual([]);
    },
  );

  it('holds a later record of a key within a page against the earlier', () => {
    const reads = [page({ n: 1, s: 'a' }, { n: 1, s: 'b' }, { n: 1, s: 'b' }, { n: 1, s: 'a' })];
    const [found] = differences(reads);
    expect(inShort(found!)).toEqual(['c 1', 'u 1 s', 'u 1 s']);
    expect(found!.unchanged).toBe(1);
    expect(found!.changes.map(({ before }) => before?.s)).toEqual([undefined, 'a', 'b']);
  });

  it('matches the elements of an array by their identity', () => {
    const order = (status: string) => ({
      n: 1,
      fulfillment_info: [{ fulfillment_id: 'F-12', status }],
    });
    const reads = [page(order('open')), page(order('sent'))];
    const found = differences(reads, { identities: ORDERS.arrays });
    expect(found.map(inShort)).toEqual([['c 1'], ['u 1 fulfillment_info[F-12].status']]);
  });

  it('finds the last images where it is told to, and leaves it to the owner to keep them', () => {
    const image = Buffer.from('{"n":1,"s":"old"}');
    const get = vi.fn((key: string) => (key === '1' ? image : undefined));
    const reads = [page({ n: 1, s: 'new' }), page({ n: 1, s: 'new' }, { n: 1, s: 'new' })];
    const found = differences(reads, { images: { get } });
    expect(found.map(inShort)).toEqual([['u 1 s'], ['u 1 s']]); // nobody has kept the first
    expect(found[1]!.unchanged).toBe(1); // but within the page it is known
    expect(get.mock.calls.flat()).toEqual(['1', '1']);
  });

  it('takes the image of a record that is encoded already, and encodes it no more', () => {
    const encode = vi.fn((): Buffer => {
      throw new Error('not to be encoded');
    });
    const decode = (bytes: Buffer) => JSON.parse(bytes.toString()) as JsonObject;
    const encoded = (s: string): ReadRecords => ({
      records: [record({ n: 1, s }).withImage(encodedAs({ n: 1, s }))],
    });
    const reads = [encoded('a'), encoded('a'), encoded('b')];
    const found = differences(reads, { codec: { encode, decode } });
    expect(found.map(inShort)).toEqual([['c 1'], [], ['u 1 s']]);
    expect(found[1]!.same).toEqual(reads[1]!.records);
  });

  it('counts what is known to be the same, and looks neither at it nor at its image', () => {
    const known = (key: string) => unparsed(key, { image: PUBLISHED, updatedAt: null });
    const get = vi.fn(() => undefined);
    const read = { records: [known('1'), record({ n: 2 }), known('3')] };
    const [found] = differences([read], { images: { get } });
    expect(inShort(found!)).toEqual(['c 2']);
    expect([found!.unchanged, found!.same]).toEqual([2, [read.records[0], read.records[2]]]);
    expect(get.mock.calls).toEqual([['2']]);
  });

  it('compares what is known to be the same, where its page has changed it before', () => {
    const read = {
      records: [record({ n: 1, s: 'b' }), record({ n: 1, s: 'a' }).withImage(PUBLISHED)],
    };
    const image = Buffer.from('{"n":1,"s":"a"}');
    const [found] = differences([read], { images: { get: () => image } });
    expect([inShort(found!), found!.same]).toEqual([['u 1 s', 'u 1 s'], []]);
  });

  it('decodes a change by the codec of its own time, and only when somebody looks', () => {
    const codecOf = (name: string) => ({
      encode: (record: JsonObject) => Buffer.from(stringifyJson(record)),
      decode: vi.fn((bytes: Buffer) => ({
        ...(parseJson(bytes.toString()) as JsonObject),
        by: name,
      })),
    });
    const [old, grown] = [codecOf('old'), codecOf('grown')];
    let now = old;
    const options = {
      get codec() {
        return now;
      },
    };
    const found: Difference<ReadRecords>[] = [];
    const reads = new Subject<ReadRecords>();
    reads.pipe(diff(options)).subscribe((difference) => found.push(difference));
    reads.next(page({ n: 1, s: 'a' }));
    reads.next(page({ n: 1, s: 'b' }));
    now = grown;
    reads.next(page({ n: 1, s: 'c' }));
    expect([old.decode, grown.decode].map(({ mock }) => mock.calls)).toEqual([[], []]);
    const changes = found.flatMap((each) => each.changes);
    expect(changes.map(({ before, after }) => [before?.by, after?.by])).toEqual([
      [undefined, 'old'],
      ['old', 'old'],
      ['grown', 'grown'],
    ]);
    const [, update] = changes;
    expect([update!.changed, update!.after, update!.changed]).toEqual([
      ['s'],
      { n: 1, s: 'b', by: 'old' },
      ['s'],
    ]);
    expect(old.decode).toHaveBeenCalledTimes(3); // each image once
  });

  it('keeps the images of each subscription to itself', () => {
    const scheduler = virtualTime();
    scheduler.run(({ cold, expectObservable }) => {
      const operator = diff();
      const seen = cold('a|', { a: page({ n: 1 }) }).pipe(
        operator,
        map((found) => inShort(found).join()),
      );
      expectObservable(seen).toBe('a|', { a: 'c 1' });
      expectObservable(
        cold('a|', { a: page({ n: 1 }) }).pipe(
          diff(),
          map(({ unchanged }) => unchanged),
        ),
      ).toBe('a|', { a: 0 });
    });
  });
});

describe('diff of reads that overlap', () => {
  const at = (hour: number) => `2026-03-05T${String(hour).padStart(2, '0')}:00:00.000Z`;
  const read = (begin: number, end: number, ...records: JsonObject[]): ReadRecords => ({
    ...page(...records),
    span: { begin, end },
  });
  const overlapping = (...reads: ReadRecords[]) =>
    differences(reads, { newest: new NewestReads(busyClock()) });

  it('drops an answer that is older than what it holds', () => {
    const found = overlapping(
      read(2, 3, { n: 1, updated_at: at(13) }),
      read(1, 4, { n: 1, updated_at: at(12) }, { n: 2 }),
    );
    expect(found.map(inShort)).toEqual([['c 1'], ['c 2']]);
    expect(found.map(({ undecided }) => undecided)).toEqual([[], []]);
    expect(found[1]!.unchanged).toBe(0);
  });

  it('drops by the order of reads, whatever updated_at says', () => {
    const found = overlapping(
      read(3, 4, { n: 1, updated_at: at(12) }),
      read(1, 2, { n: 1, updated_at: at(13) }),
      read(5, 6, { n: 1, updated_at: at(11) }),
    );
    expect(found.map(inShort)).toEqual([['c 1'], [], ['u 1 updated_at']]);
  });

  it('reports what cannot be told, and keeps what it has', () => {
    const found = overlapping(
      read(1, 3, { n: 1, s: 'a' }, { n: 2, s: 'a' }),
      read(2, 4, { n: 1, s: 'b' }, { n: 2, s: 'a' }),
      read(5, 6, { n: 1, s: 'b' }),
    );
    expect(found.map(inShort)).toEqual([['c 1', 'c 2'], [], ['u 1 s']]);
    expect(found.map(({ undecided }) => undecided)).toEqual([[], ['1'], []]);
    expect(found[1]!.unchanged).toBe(1);
    expect(found[2]!.changes[0]!.before).toMatchObject({ s: 'a' });
  });

  it('learns from a read that brought the same once more', () => {
    const found = overlapping(
      read(1, 9, { n: 1, s: 'a' }),
      read(2, 3, { n: 1, s: 'a' }), // it was so by 3
      read(4, 10, { n: 1, s: 'b' }),
    );
    expect(found.map(inShort)).toEqual([['c 1'], [], ['u 1 s']]);
    expect(found.flatMap(({ undecided }) => undecided)).toEqual([]);
  });

  it('judges nothing without spans', () => {
    const reads = [page({ n: 1, updated_at: at(13) }), page({ n: 1, updated_at: at(12) })];
    const found = differences(reads, { newest: new NewestReads(busyClock()) });
    expect(found.map(inShort)).toEqual([['c 1'], ['u 1 updated_at']]);
  });

  it('holds nothing against a read without a span', () => {
    const found = overlapping(page({ n: 1 }, { n: 2 }), { records: [], gone: ['2'] });
    expect(found.map(inShort)).toEqual([['c 1', 'c 2'], ['d 2']]);
    const later = overlapping(
      page({ n: 1 }, { n: 2 }),
      { records: [], gone: ['2'] },
      read(1, 2, { n: 1, s: 'a' }, { n: 2, s: 'a' }),
    );
    expect(inShort(later[2]!)).toEqual(['u 1 s', 'c 2']);
  });

  it('takes each read for newer where nobody judges', () => {
    const last: ReadRecords = { records: [], gone: ['1'], span: { begin: 1, end: 5 } };
    const found = differences([read(3, 4, { n: 1 }), read(1, 2, { n: 1, s: 'a' }), last]);
    expect(found.map(inShort)).toEqual([['c 1'], ['u 1 s'], ['d 1']]);
  });
});

describe('diff of what is known to be the same', () => {
  it('learns from it when it was so, as from what it compares', () => {
    const known = (begin: number, end: number): ReadRecords => ({
      records: [keyedRecord('1', { n: 1, s: 'a' }, { image: PUBLISHED, updatedAt: 7 })],
      span: { begin, end },
    });
    const read = (begin: number, end: number, s: string): ReadRecords => ({
      ...page({ n: 1, s }),
      span: { begin, end },
    });
    const reads = [read(1, 9, 'a'), known(2, 3), read(4, 10, 'b')];
    const found = differences(reads, { newest: new NewestReads(busyClock()) });
    expect(found.map(inShort)).toEqual([['c 1'], [], ['u 1 s']]);
    expect(found.flatMap(({ undecided }) => undecided)).toEqual([]);
    // An answer before it is older, and of one that overlapped it nobody can tell.
    const later = [read(1, 9, 'a'), known(5, 7), read(3, 4, 'b'), read(6, 8, 'c')];
    const judged = differences(later, { newest: new NewestReads(busyClock()) });
    expect(judged.map(inShort)).toEqual([['c 1'], [], [], []]);
    expect(judged.map(({ undecided }) => undecided)).toEqual([[], [], [], ['1']]);
  });
});

describe('diff of keys that are gone', () => {
  const at = (hour: number) => `2026-03-05T${String(hour).padStart(2, '0')}:00:00.000Z`;
  const read = (begin: number, end: number, ...records: JsonObject[]): ReadRecords => ({
    ...page(...records),
    span: { begin, end },
  });
  const gone = (begin: number, end: number, ...keys: string[]): ReadRecords => ({
    records: [],
    gone: keys,
    span: { begin, end },
  });
  /** What each read brings, in short, undecided keys with a `?`. */
  const brought = (...reads: ReadRecords[]) =>
    differences(reads, { newest: new NewestReads(busyClock()) }).map((found) =>
      [...inShort(found), ...found.undecided.map((key) => `${key}?`)].join(),
    );

  it('gives a deletion whole: the last image, its bytes, and no time', () => {
    const before = { n: 1, s: 'x', updated_at: at(12) };
    const found = differences([page(before), { records: [], gone: ['1', 'never seen'] }]);
    const bytes = Buffer.from(stringifyJson(before));
    expect(found[1]!.changes.map(whole)).toEqual([
      {
        key: '1',
        op: 'd',
        before,
        after: null,
        images: { before: bytes, after: null },
        changed: [],
        updatedAt: null,
      },
    ]);
  });

  it('tells nothing of a key without an image, nor twice of one', () => {
    const reads = [page({ n: 1 }), { records: [], gone: ['1', '2'] }];
    expect(differences([...reads, reads[1]!]).map(inShort)).toEqual([['c 1'], ['d 1'], []]);
  });

  it('finds the image where it is told to', () => {
    const images = { get: (key: string) => (key === '1' ? Buffer.from('{"n":1}') : undefined) };
    const found = differences([{ records: [], gone: ['1', '2'] }], { images });
    expect(found.map(inShort)).toEqual([['d 1']]);
  });

  it('takes a record that is back for a new one', () => {
    expect(brought(read(1, 2, { n: 1 }), gone(3, 4, '1'), read(5, 6, { n: 1 }))).toEqual([
      'c 1',
      'd 1',
      'c 1',
    ]);
  });

  it('does not let an older answer bring a record back', () => {
    const alive = { n: 1, s: 'a', updated_at: at(12) };
    const found = brought(
      read(1, 2, alive),
      gone(5, 6, '1'),
      read(3, 4, { ...alive, s: 'b', updated_at: at(13) }), // ended before
      read(3, 7, { ...alive, s: 'c', updated_at: at(14) }), // overlapped: nobody can tell
    );
    expect(found).toEqual(['c 1', 'd 1', '', '1?']);
  });

  it('does not take for gone what a later read has seen, nor decides of one that overlapped', () => {
    expect(
      brought(
        read(5, 8, { n: 1 }, { n: 2 }),
        gone(1, 4, '1'), // seen since
        gone(6, 9, '2'), // seen meanwhile
        gone(9, 10, '1', '2'),
      ),
    ).toEqual(['c 1,c 2', '', '2?', 'd 1,d 2']);
  });
});

describe('instantOf', () => {
  afterEach(() => vi.unstubAllEnvs());

  it.each([
    ['2026-03-05T12:00:00.000Z', Date.UTC(2026, 2, 5, 12)],
    ['2026-03-05T12:00:00Z', Date.UTC(2026, 2, 5, 12)],
    ['2026-03-05T12:00:00.123456Z', Date.UTC(2026, 2, 5, 12, 0, 0, 123)],
    ['2026-03-05T14:00:00+02:00', Date.UTC(2026, 2, 5, 12)],
    ['2026-03-05T12:00:00', Date.UTC(2026, 2, 5, 12)], // no zone is UTC, as in the schemas
    ['2026-03-05 12:00:00', Date.UTC(2026, 2, 5, 12)],
    ['2026-03-05', Date.UTC(2026, 2, 5)],
    ['1', null], // which Date.parse takes for a month of 2001
    ['yesterday', null],
    ['', null],
    [null, null],
    [1_772_712_000_000, null],
  ])('reads %s as %s, wherever the machine is', (text, expected) => {
    vi.stubEnv('TZ', 'America/Los_Angeles');
    expect(new Date(0).getHours()).not.toBe(0);
    expect(instantOf({ t: text }, 't')).toBe(expected);
  });

  it('finds none in a field that is not there', () => {
    expect(instantOf({}, 'toString')).toBeNull();
    expect(instantOf({}, 'updated_at')).toBeNull();
    expect(instantOf({ updated_at: '1970-01-01T00:00:00Z' }, 'updated_at')).toBe(0);
  });
});
