import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonNumber, parseJson } from '../../../src/schemas/json/json.ts';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { PageRecord } from '../../../src/streams/records/page-record.ts';
import {
  chooseKeyFields,
  keyRecords,
  newRejects,
  rejectDigest,
  splitRecords,
} from '../../../src/streams/records/records.ts';
import type { SplitRecords } from '../../../src/streams/records/records.ts';
import { volatileFields } from '../../../src/streams/records/volatile-fields.ts';

const keyOf = keyOfFields(['order_number']);
const keyIn = (text: string) => keyOf(parseJson(`{"order_number":${text}}`));

describe('keyOfFields', () => {
  it.each([
    ['100234', '100234'],
    ['0', '0'],
    ['-7', '-7'],
    ['1e3', '1000'],
    ['9007199254740991', '9007199254740991'],
    ['9007199254740992', '9007199254740992'], // 2^53: past what is safe, yet exact
    ['9007199254740993', '9007199254740993'], // no double
    ['12345678901234567890', '12345678901234567890'],
    ['-12345678901234567890', '-12345678901234567890'],
    ['"A-17"', 'A-17'],
    ['" "', ' '],
    ['"Ä|\\\\"', 'Ä|\\'], // a single field needs no escapes
  ])('reads %s as %s', (text, key) => {
    expect(keyIn(text)).toBe(key);
  });

  it.each([
    'null',
    '""',
    '1.5',
    '0.1234567890123456789',
    '1e400',
    '"a\\ud800"',
    'true',
    '{}',
    '[]',
    '[1]',
  ])('finds none in %s', (text) => {
    expect(keyIn(text)).toBeUndefined();
  });

  it.each<[JsonValue]>([[{}], [null], [7], ['7'], [[7]], [new JsonNumber('7')]])(
    'finds none where the field is missing: %s',
    (record) => {
      expect(keyOf(record)).toBeUndefined();
    },
  );

  it('takes no inherited property for a field', () => {
    expect(keyOfFields(['toString'])({})).toBeUndefined();
    expect(keyOfFields(['constructor'])({})).toBeUndefined();
  });

  it('finds none that the image store could not hold: 1,000 bytes of UTF-8 at most', () => {
    expect(keyOf({ order_number: 'x'.repeat(1_000) })).toHaveLength(1_000);
    expect(keyOf({ order_number: 'x'.repeat(1_001) })).toBeUndefined();
    expect(keyOf({ order_number: 'é'.repeat(501) })).toBeUndefined();
  });

  it('joins several fields by |, escaped', () => {
    const composite = keyOfFields(['club', 'member']);
    expect(composite({ club: 'Reds', member: 7 })).toBe('Reds|7');
    expect(composite({ club: 'a|b', member: 'c\\' })).toBe('a\\|b|c\\\\');
    expect(composite({ member: 7, club: new JsonNumber('12345678901234567890') })).toBe(
      '12345678901234567890|7',
    );
    expect(composite({ club: 'Reds' })).toBeUndefined();
    expect(composite({ club: 'Reds', member: null })).toBeUndefined();
  });

  it('gives different keys to different fields', () => {
    const part = fc.string({ unit: fc.constantFrom('a', '|', '\\'), minLength: 1, maxLength: 4 });
    const composite = keyOfFields(['a', 'b']);
    fc.assert(
      fc.property(part, part, part, part, (a, b, c, d) => {
        fc.pre(a !== c || b !== d);
        expect(composite({ a, b })).not.toBe(composite({ a: c, b: d }));
      }),
      { numRuns: 2_000 },
    );
  });
});

/** A page that was split, with what was sent of each record. */
const shown = ({ keyed, rejected }: SplitRecords) => ({
  keyed: keyed.map(({ key, json }) => ({ key, record: json })),
  rejected,
});

describe('keyRecords', () => {
  it('splits a page into records with a key and those without, in order', () => {
    const page: JsonValue[] = [
      { order_number: 2 },
      null,
      { order_number: 1, notes: 'x' },
      { order_number: null },
      'text',
      [],
      new JsonNumber('12345678901234567890'),
    ];
    expect(shown(keyRecords(page, keyOf))).toEqual({
      keyed: [
        { key: '2', record: { order_number: 2 } },
        { key: '1', record: { order_number: 1, notes: 'x' } },
      ],
      rejected: [
        { reason: 'not-an-object', raw: null, key: null },
        { reason: 'no-key', raw: { order_number: null }, key: null },
        { reason: 'not-an-object', raw: 'text', key: null },
        { reason: 'not-an-object', raw: [], key: null },
        { reason: 'not-an-object', raw: new JsonNumber('12345678901234567890'), key: null },
      ],
    });
  });

  it('rejects what is no JSON, with its text and its own place in the list', () => {
    const page = [
      PageRecord.ofJson({ order_number: 2 }, { key: '2' }),
      PageRecord.unreadable('{"order_number":NaN}', 91),
    ];
    expect(shown(splitRecords(page))).toEqual({
      keyed: [{ key: '2', record: { order_number: 2 } }],
      rejected: [{ reason: 'unreadable', raw: '{"order_number":NaN}', key: null, offset: 91 }],
    });
  });

  it('keeps one of several records that say the same, in whatever order their keys come', () => {
    const records = ['{"order_number":2,"id":1e400}', '{"order_number":1}', '{"order_number":1}'];
    const page = [...records, '{"id":1e400,"order_number":2}'].map(parseJson);
    expect(shown(keyRecords(page, keyOf))).toEqual({
      keyed: [
        { key: '2', record: page[0] },
        { key: '1', record: page[1] },
      ],
      rejected: [],
    });
  });

  it.each([
    ['{"order_number":1}', '{"order_number":1,"notes":null}'],
    ['{"order_number":1,"tip":0}', '{"order_number":1,"tip":-0}'],
    [
      '{"order_number":1,"id":12345678901234567890}',
      '{"order_number":1,"id":12345678901234567891}',
    ],
    ['{"order_number":1}', '{"order_number":"1"}'],
  ])('rejects a record with a key that is taken and other content: %s %s', (text, other) => {
    const [first, conflicting] = [parseJson(text), parseJson(other)];
    const page = [first, conflicting, { order_number: 2 }, first, conflicting] as JsonValue[];
    const rejected = { reason: 'conflicting-duplicate', raw: conflicting, key: '1' };
    expect(shown(keyRecords(page, keyOf))).toEqual({
      keyed: [
        { key: '1', record: first },
        { key: '2', record: { order_number: 2 } },
      ],
      rejected: [rejected, rejected], // each is held against the first, not against the last
    });
  });

  it('does not look into records whose keys are their own', () => {
    const unseen = (order_number: number): JsonValue => {
      const record = { order_number };
      return Object.defineProperty(record, 'notes', {
        enumerable: true,
        get: () => expect.fail('looked into'),
      });
    };
    expect(keyRecords([unseen(1), unseen(2)], keyOf).keyed).toHaveLength(2);
    expect(() => keyRecords([unseen(1), unseen(1)], keyOf)).toThrow('looked into');
  });

  it('has nothing to split in an empty page', () => {
    expect(keyRecords([], keyOf)).toEqual({ keyed: [], rejected: [], rejectedAt: [] });
  });
});

const reject = (raw: number) => ({ reason: 'no-key', raw, key: null }) as const;

it('knownRejects: the same reject is news once on a page, a changed one again', () => {
  const isNews = newRejects(() => false);
  const news = (...raws: number[]) => raws.map((raw) => isNews(reject(raw)));
  expect(news(1, 1, 2, 1, 3)).toEqual([true, false, true, false, true]);
  expect(isNews({ reason: 'not-an-object', raw: 1, key: null })).toBe(true);
});

it('knownRejects: what an earlier page has told, or an earlier process, is no news', () => {
  const known = new Set([1, 2].map((raw) => rejectDigest(reject(raw))));
  const isNews = newRejects((digest) => known.has(digest));
  expect([1, 2, 3].map((raw) => isNews(reject(raw)))).toEqual([false, false, true]);
  expect([...known].map((digest) => Buffer.byteLength(digest, 'latin1'))).toEqual([16, 16]);
});

it('knownRejects: a record that differs in a volatile field alone is no news', () => {
  const volatile = volatileFields(['/seen']);
  const record = (seen: number, name = 'x') =>
    ({ reason: 'no-key', raw: { seen, name }, key: null }) as const;
  const known = rejectDigest(record(1), volatile);
  const isNews = newRejects((digest) => digest === known, volatile);
  expect([record(2), record(3), record(3, 'y')].map(isNews)).toEqual([false, false, true]);
});

const CANDIDATES = [['id'], ['sku', 'location'], ['sku']];

describe('chooseKeyFields', () => {
  it('takes the first candidate that every record has, with a value of its own', () => {
    const choice = (data: object[]) => chooseKeyFields(data as [], CANDIDATES);
    expect(
      choice([
        { id: 1, sku: 'a' },
        { id: 2, sku: 'b' },
      ]),
    ).toEqual({ fields: ['id'] });
    expect(choice([{ id: 1, sku: 'a' }, { sku: 'b' }])).toEqual({ fields: ['sku'] });
    expect(choice([{ id: 1 }, { sku: 'b' }])).toMatchObject({ fields: undefined });
    expect(
      choice([
        { id: 1, sku: 'a' },
        { id: 1, sku: 'b' },
      ]),
    ).toEqual({ fields: ['sku'] });
    const places = [
      { sku: 'a', location: 'x' },
      { sku: 'a', location: 'y' },
    ];
    expect(choice(places)).toEqual({ fields: ['sku', 'location'] });
  });

  it('lets a tenth of the records go without, and a fifth where no candidate fits otherwise', () => {
    const page = (without: number) =>
      Array.from({ length: 10 }, (_, id) => (id < without ? { name: 'x' } : { id }));
    expect(chooseKeyFields(page(2), CANDIDATES)).toEqual({ fields: ['id'] });
    expect(chooseKeyFields(page(3), CANDIDATES)).toMatchObject({ fields: undefined });
    const withSku = (without: number) =>
      page(without).map((record, n) => ({ ...record, sku: `s${n}` }));
    expect(chooseKeyFields(withSku(1), CANDIDATES)).toEqual({ fields: ['id'] });
    expect(chooseKeyFields(withSku(2), CANDIDATES)).toEqual({ fields: ['sku'] });
    const conflict = [...page(0), { id: 1, name: 'another' }];
    expect(chooseKeyFields(conflict, CANDIDATES)).toMatchObject({ fields: undefined });
  });

  it('takes no record that comes twice, unchanged, for two with one key', () => {
    const again = [{ id: 1, sku: 'a' }, { id: 2 }, { sku: 'a', id: 1 }];
    expect(chooseKeyFields(again, CANDIDATES)).toEqual({ fields: ['id'] });
    expect(chooseKeyFields([...again, { id: 2, sku: null }], CANDIDATES)).toEqual({
      fields: undefined,
      seen: ['id', 'sku'],
    });
  });

  it('does not take a field for a key whose values are no keys', () => {
    for (const odd of [null, '', 1.5, true, {}, []]) {
      expect(chooseKeyFields([{ id: odd, sku: 'a' }], CANDIDATES)).toEqual({ fields: ['sku'] });
    }
  });

  it('names the fields it has seen when none fits', () => {
    const data = [
      { name: 'x', id: 1 },
      { size: 2, id: 1 },
    ];
    expect(chooseKeyFields(data, CANDIDATES)).toEqual({
      fields: undefined,
      seen: ['id', 'name', 'size'],
    });
  });

  it('says nothing of a page without records, and passes over what is no object', () => {
    expect(chooseKeyFields([], CANDIDATES)).toBeUndefined();
    expect(chooseKeyFields([null, 7], CANDIDATES)).toBeUndefined();
    expect(chooseKeyFields([null, { id: 1 }], CANDIDATES)).toEqual({ fields: ['id'] });
  });
});
