import { defer, delay, of } from 'rxjs';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { records } from '../support/records.ts';
import { chooseKey, keyFieldsOf } from '../../src/pipeline/choose-key.ts';
import type { ChooseKeyOptions } from '../../src/pipeline/choose-key.ts';
import type { Config, FieldPointer } from '../../src/config/config.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { Resource } from '../../src/description/description.ts';
import type { JsonValue } from '../../src/schemas/json/json.ts';
import type { Answer } from '../../src/streams/decode/response.ts';
import { virtualTime } from '../support/virtual-time.ts';

const NOON = Date.UTC(2026, 2, 5, 12);
const REQUEST_MS = 5;
const PAUSE_MS = 100;

/** Settings of the keys of these resources alone, and of personal fields that are left out. */
const settings = (
  set: Partial<Record<Resource, readonly string[]>> = {},
  drop: readonly FieldPointer[] = [],
) => ({
  keyFields: set as Config['keyFields'],
  keyFormat: 'text' as const,
  pii: { drop, mask: [], hmac: [], hmacKey: undefined },
});

/** What is chosen, and when it was looked at, of a list with these pages, one at each look. */
function chosen(
  resource: Resource,
  pages: readonly (readonly JsonValue[])[],
  options: Partial<ChooseKeyOptions> = {},
) {
  const scheduler = virtualTime();
  const found: unknown[] = [];
  const looks: number[] = [];
  const firstPage: Observable<Answer> = defer(() => {
    const data = records(pages[looks.length]!);
    looks.push(scheduler.now());
    const serverTime = NOON + scheduler.now();
    const envelope = { total: data.length, hasNext: false };
    const page: Answer = { data, ...envelope, span: { begin: 1, end: 2 }, serverTime };
    return of(page).pipe(delay(REQUEST_MS, scheduler));
  });
  scheduler.run(() => {
    chooseKey({
      list: listNamed(WINE, resource),
      config: settings(),
      publishedKeyFields: null,
      firstPage,
      pauseMs: PAUSE_MS,
      topic: 'wine.list',
      scheduler,
      ...options,
    }).subscribe({
      next: (choice) => found.push(choice),
      error: (error: unknown) => found.push(error),
      complete: () => found.push('complete'),
    });
  });
  return { found, looks };
}

describe('chooseKey', () => {
  it('goes by what is published, without a look at the list', () => {
    const { found, looks } = chosen('products', [], { publishedKeyFields: ['handle'] });
    expect(found).toEqual([
      { keyFields: ['handle'], isNew: false, beganAt: null, wasEmpty: false },
      'complete',
    ]);
    expect(looks).toEqual([]);
  });

  it('does not go on with keys of a field that is to be hidden now', () => {
    const config = settings({}, [{ resource: 'products', path: ['handle'] }]);
    const { found, looks } = chosen('products', [], {
      publishedKeyFields: ['shop', 'handle'],
      config,
    });
    expect(found).toEqual([
      expect.objectContaining({
        code: 'KEY_FIELDS',
        message:
          'the events in wine.list are keyed by handle, a field that PII_DROP, PII_MASK or PII_HMAC hides: remove the field from these settings, or set another TOPIC_PREFIX',
      }),
    ]);
    expect(looks).toEqual([]);
    const others = settings({}, [{ resource: 'orders', path: ['handle'] }]);
    expect(
      chosen('products', [], { publishedKeyFields: ['handle'], config: others }).found,
    ).toHaveLength(2);
  });

  it('goes by what the description tells, without a look at the list', () => {
    const { found, looks } = chosen('orders', []);
    expect(found[0]).toEqual({
      keyFields: ['order_number'],
      isNew: false,
      beganAt: null,
      wasEmpty: false,
    });
    expect(looks).toEqual([]);
  });

  it('finds it out from the first page', () => {
    const { found, looks } = chosen('customers', [
      [{ id: null, customer_id: 1 }, { customer_id: 2 }],
    ]);
    expect(found).toEqual([
      { keyFields: ['customer_id'], isNew: true, beganAt: null, wasEmpty: false },
      'complete',
    ]);
    expect(looks).toEqual([0]);
  });

  it('looks at an empty list again until it is no longer empty, and tells when it looked first', () => {
    const { found, looks } = chosen('products', [[], [], [{ id: 1 }]]);
    expect(found).toEqual([
      { keyFields: ['id'], isNew: true, beganAt: NOON, wasEmpty: true },
      'complete',
    ]);
    expect(looks).toEqual([0, REQUEST_MS + PAUSE_MS, 2 * (REQUEST_MS + PAUSE_MS)]);
  });

  it('takes the setting where the description names another key', () => {
    const list = { ...listNamed(WINE, 'products'), keyCandidates: [['id']] };
    const config = settings({ products: ['sku'] });
    const { found } = chosen('products', [[{ id: 1, sku: 2 }]], { list, config });
    expect(found[0]).toMatchObject({ keyFields: ['sku'], isNew: true });
    const same = chosen('products', [], { list, config: settings({ products: ['id'] }) });
    expect(same.found[0]).toMatchObject({ keyFields: ['id'], isNew: false });
  });

  it('takes the setting, once a record shows that it fits', () => {
    const config = settings({ inventory: ['sku', 'shelf'] });
    const { found, looks } = chosen('inventory', [[], [{ id: 1 }, { sku: 'a', shelf: 2 }]], {
      config,
    });
    expect(found[0]).toEqual({
      keyFields: ['sku', 'shelf'],
      isNew: true,
      beganAt: NOON,
      wasEmpty: true,
    });
    expect(looks).toHaveLength(2);
  });

  it('keeps to what is published where the setting says the same', () => {
    const options = {
      publishedKeyFields: ['sku', 'shelf'],
      config: settings({ inventory: ['sku', 'shelf'] }),
    };
    const { found } = chosen('inventory', [], options);
    expect(found[0]).toMatchObject({ keyFields: ['sku', 'shelf'], isNew: false });
  });

  it('fails where the setting is another than what is published, and says what to do', () => {
    const options = {
      publishedKeyFields: ['id'],
      config: settings({ 'wine-club-members': ['uuid'] }),
    };
    const { found, looks } = chosen('wine-club-members', [], options);
    expect(found).toEqual([expect.any(CellarstreamError)]);
    expect(found[0]).toMatchObject({
      code: 'KEY_FIELDS',
      message:
        'KEY_FIELDS_WINE_CLUB_MEMBERS is uuid, but the events in wine.list are keyed by id: unset KEY_FIELDS_WINE_CLUB_MEMBERS, or set another TOPIC_PREFIX',
    });
    expect(looks).toEqual([]);
  });

  it('fails where the keys were written in another format', () => {
    const config = { ...settings(), keyFormat: 'avro' as const };
    const { found } = chosen('products', [], { publishedKeyFields: ['id'], config });
    expect(found[0]).toMatchObject({
      code: 'KEY_FIELDS',
      message:
        'KEY_FORMAT is avro, but the keys in wine.list are written as text: set KEY_FORMAT to text, or set another TOPIC_PREFIX',
    });
    const same = chosen('products', [], {
      publishedKeyFields: ['id'],
      publishedFormat: 'avro',
      config,
    });
    expect(same.found[0]).toMatchObject({ keyFields: ['id'] });
  });

  it('fails with the names of the fields when none fits', () => {
    const { found } = chosen('wine-clubs', [[{ name: 'a' }, { title: 'b' }]]);
    expect(found[0]).toMatchObject({ code: 'KEY_FIELDS' });
    const { message } = found[0] as Error;
    expect(message).toContain('none of id, wine_club_id, club_id, uuid is the key of wine-clubs');
    expect(message).toContain('set KEY_FIELDS_WINE_CLUBS to the field');
    expect(message).toMatch(/fields seen: name, title$/);
  });
});

describe('keyFieldsOf', () => {
  const inventory = (...data: JsonValue[]) =>
    keyFieldsOf(listNamed(WINE, 'inventory'), settings(), data);

  it('takes the first candidate that tells all records apart', () => {
    expect(inventory({ id: 1, sku: 'a' }, { id: 2, sku: 'b' })).toEqual(['id']);
    expect(inventory({ sku: 'a', location: 'x' }, { sku: 'a', location: 'y' })).toEqual([
      'sku',
      'location',
    ]);
  });

  it('says nothing without a record, save of a key that is certain', () => {
    expect(inventory()).toBeUndefined();
    expect(() => inventory(null, 7)).toThrow(
      'no element of the first page of inventory is a JSON object: correct `records` of this list in the description, the place of the records in a response',
    );
    expect(
      keyFieldsOf(listNamed(WINE, 'inventory'), settings({ inventory: ['sku'] }), []),
    ).toBeUndefined();
    expect(keyFieldsOf(listNamed(WINE, 'orders'), settings(), [])).toEqual(['order_number']);
  });

  it('takes a setting that some records have not, but not one that none has', () => {
    const set = settings({ products: ['code'] });
    expect(keyFieldsOf(listNamed(WINE, 'products'), set, [{ id: 1 }, { code: 'a' }])).toEqual([
      'code',
    ]);
    expect(() =>
      keyFieldsOf(listNamed(WINE, 'products'), set, [{ id: 1, code: '' }, { b: 2 }]),
    ).toThrow(
      'KEY_FIELDS_PRODUCTS is code, which no record of the first page has; fields seen: b, code, id',
    );
  });

  it('takes no field of which something is hidden', () => {
    const hide = (...path: string[]) => settings({}, [{ resource: 'customers', path }]);
    const customers = [
      { id: 1, customer_number: 'a' },
      { id: 2, customer_number: 'b' },
    ];
    expect(keyFieldsOf(listNamed(WINE, 'customers'), hide('email'), customers)).toEqual(['id']);
    expect(keyFieldsOf(listNamed(WINE, 'customers'), hide('id'), customers)).toEqual([
      'customer_number',
    ]);
    expect(keyFieldsOf(listNamed(WINE, 'customers'), hide('id', 'text'), customers)).toEqual([
      'customer_number',
    ]);
    expect(() =>
      keyFieldsOf(listNamed(WINE, 'customers'), hide('id'), [{ id: 1 }, { id: 2 }]),
    ).toThrow(
      'none of id, customer_id, customer_number, uuid is the key of customers (the PII_ settings hide id): set KEY_FIELDS_CUSTOMERS to the field that identifies a record, or to several fields separated by commas; fields seen: id',
    );
    const all = ['id', 'customer_id', 'customer_number', 'uuid'];
    const nothing = settings(
      {},
      all.map((name) => ({ resource: 'customers', path: [name] })),
    );
    expect(() => keyFieldsOf(listNamed(WINE, 'customers'), nothing, customers)).toThrow(
      '(the PII_ settings hide id,',
    );
  });

  it('names fifty fields at most, and no values', () => {
    const record = Object.fromEntries(
      Array.from({ length: 60 }, (_, k) => [`f${k + 100}`, 'ada@example.com']),
    );
    const seen = Array.from({ length: 50 }, (_, k) => `f${k + 100}`).join(', ');
    expect(() => inventory(record)).toThrow(`fields seen: ${seen}, ...`);
    expect(() => inventory(record)).not.toThrow(/ada@/);
  });
});
