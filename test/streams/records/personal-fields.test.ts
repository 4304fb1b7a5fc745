import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { JsonNumber, parseJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import { MASK, personalFields } from '../../../src/streams/records/personal-fields.ts';
import type { PersonalField, HidingMethod } from '../../../src/streams/records/personal-fields.ts';

const KEY = 'a key that nobody guesses';
const hmac = (json: string) =>
  `hmac-sha256:${createHmac('sha256', KEY).update(json).digest('hex')}`;

const field = (path: string, way: HidingMethod): PersonalField => ({
  path: path.split('.'),
  method: way,
});
const personal = (...fields: [path: string, way: HidingMethod][]) =>
  personalFields(
    fields.map(([path, way]) => field(path, way)),
    () => KEY,
  );
const hidden = (value: JsonValue, ...fields: [path: string, way: HidingMethod][]) =>
  personal(...fields).hide(value);

describe('a personal field', () => {
  it('that is dropped is gone, whatever it is', () => {
    for (const value of ['jane', 7, true, null, new JsonNumber('1e400'), ['a'], { b: 1 }]) {
      expect(hidden({ id: 1, it: value }, ['it', 'drop'])).toEqual({ id: 1 });
    }
  });

  it('that is masked is one text, whatever it is: not even its length shows', () => {
    for (const value of ['', 'jane', 7, false, new JsonNumber('1e400'), { b: 1 }]) {
      expect(hidden({ id: 1, it: value }, ['it', 'mask'])).toEqual({ id: 1, it: '***' });
    }
  });

  it.each([
    ['jane@example.com', '"jane@example.com"'],
    ['', '""'],
    ['Zoë "Z"', '"Zoë \\"Z\\""'],
    [12.5, '12.5'],
    [true, 'true'],
    [new JsonNumber('12345678901234567890'), '12345678901234567890'],
    [{ b: 1, a: [null] }, '{"a":[null],"b":1}'],
  ])('that is replaced by its HMAC is that of its canonical JSON: %j', (value, json) => {
    expect(hidden({ it: value }, ['it', 'hmac'])).toEqual({ it: hmac(json) });
  });

  it('is the same HMAC in whatever field and list it stands', () => {
    const one = hidden({ email: 'j@x' }, ['email', 'hmac']) as JsonObject;
    const other = hidden({ who: { mail: 'j@x' } }, ['who.mail', 'hmac']) as JsonObject;
    expect((other.who as JsonObject).mail).toBe(one.email);
  });

  it('that is absent stays absent, and null stays null unless it is dropped', () => {
    const fields = [
      ['a', 'mask'],
      ['b.c', 'hmac'],
      ['d.e', 'drop'],
    ] as [string, HidingMethod][];
    expect(hidden({ a: null, b: null, d: null }, ...fields)).toEqual({ a: null, b: null, d: null });
    expect(hidden({ b: {}, d: { e: null } }, ...fields)).toEqual({ b: {}, d: {} });
  });

  it('is found through arrays, in arrays too', () => {
    const record = { cards: [{ four: '1', type: 'x' }, null, [{ four: '2' }]], four: 'stays' };
    expect(hidden(record, ['cards.four', 'mask'])).toEqual({
      cards: [{ four: MASK, type: 'x' }, null, [{ four: MASK }]],
      four: 'stays',
    });
    expect(hidden(record, ['cards.four', 'drop'])).toEqual({
      cards: [{ type: 'x' }, null, [{}]],
      four: 'stays',
    });
  });

  it('that is an array is dropped as a whole, else each of its elements is replaced', () => {
    const record = { mails: ['a', null, { b: 1 }] };
    expect(hidden(record, ['mails', 'drop'])).toEqual({});
    expect(hidden(record, ['mails', 'mask'])).toEqual({ mails: [MASK, null, MASK] });
    expect(hidden(record, ['mails', 'hmac'])).toEqual({
      mails: [hmac('"a"'), null, hmac('{"b":1}')],
    });
  });

  it('does not slip out where the way to it has a text in the place of an object', () => {
    const fields = [
      ['who.mail', 'hmac'],
      ['who.name', 'mask'],
    ] as [string, HidingMethod][];
    expect(hidden({ who: 'Jane, j@x' }, ...fields)).toEqual({ who: MASK });
    expect(hidden({ who: 12 }, ['who.mail', 'hmac'])).toEqual({ who: hmac('12') });
    expect(hidden({ id: 1, who: 'Jane' }, ...fields, ['who.age', 'drop'])).toEqual({ id: 1 });
    expect(hidden({ who: ['Jane', 'Joe'] }, ['who.age', 'drop'])).toEqual({ who: [null, null] });
  });

  it('does not slip out of an element of data that is no object', () => {
    expect(hidden('Jane, j@x', ['email', 'mask'])).toBe(MASK);
    expect(hidden('Jane, j@x', ['email', 'mask'], ['name', 'drop'])).toBeNull();
    expect(hidden('Jane, j@x', ['email', 'hmac'])).toBe(hmac('"Jane, j@x"'));
    expect(hidden([{ email: 'j@x', id: 1 }], ['email', 'mask'])).toEqual([{ email: MASK, id: 1 }]);
    expect(hidden(null, ['email', 'mask'])).toBeNull();
  });

  it('does not slip out of arrays nested as deep as can be', () => {
    const deep = (levels: number) => parseJson(`${'['.repeat(levels)}"j@x"${']'.repeat(levels)}`);
    for (const levels of [99, 100, 101, 100_000]) {
      const shown = hidden({ mails: deep(levels) }, ['mails', 'mask']);
      let within = (shown as JsonObject).mails;
      while (Array.isArray(within)) [within] = within;
      expect(within).toBe(MASK);
    }
  });

  it('may have any name', () => {
    const record = parseJson('{"__proto__":{"x":"j@x"},"constructor":"j@x"}');
    const fields = [
      ['__proto__.x', 'mask'],
      ['constructor', 'mask'],
      ['toString', 'mask'],
    ] as [string, HidingMethod][];
    expect(JSON.stringify(hidden(record, ...fields))).toBe(
      '{"__proto__":{"x":"***"},"constructor":"***"}',
    );
  });

  it('is hidden in the outer way where one lies within the other', () => {
    const record = { who: { name: 'Jane', tall: true } };
    expect(hidden(record, ['who', 'mask'], ['who.name', 'hmac'])).toEqual({ who: MASK });
    expect(hidden(record, ['who.name', 'mask'], ['who.name', 'drop'])).toEqual({
      who: { tall: true },
    });
  });
});

describe('what is not hidden', () => {
  it('is left as it is: the very same record where there is none of it', () => {
    const record = { id: 1, who: { tall: true }, cards: [{ type: 'x' }] };
    const { hide, hideStored } = personal(
      ['email', 'drop'],
      ['who.name', 'mask'],
      ['cards.four', 'hmac'],
    );
    expect(hide(record)).toBe(record);
    expect(hideStored(record)).toBe(record);
  });

  it('is shared, and what was given is not touched', () => {
    const record = { email: 'j@x', who: { tall: true }, cards: [{ four: '1' }] };
    const copy = structuredClone(record);
    const shown = hidden(record, ['email', 'drop'], ['cards.four', 'mask']) as JsonObject;
    expect(record).toEqual(copy);
    expect(shown.who).toBe(record.who);
  });
});

describe('what was stored', () => {
  const fields = [
    ['mail', 'hmac'],
    ['name', 'mask'],
    ['phones', 'hmac'],
  ] as [string, HidingMethod][];
  const { hide, hideStored } = personal(...fields);
  const record = { mail: 'j@x', name: 'Jane', phones: ['1', '2'] };

  it('is hidden as what comes from the API is', () => {
    expect(hideStored(record)).toEqual(hide(record));
  });

  it('is left as it is where it is hidden already', () => {
    const stored = hide(record) as JsonObject;
    expect(hideStored(stored)).toBe(stored);
    const masked = { mail: MASK, phones: [MASK] };
    expect(hideStored(masked)).toBe(masked);
  });

  it('is hidden in the new way when the settings are others now', () => {
    const stored = hide(record) as JsonObject;
    expect(personal(['mail', 'mask'], ['name', 'drop']).hideStored(stored)).toEqual({
      mail: MASK,
      phones: stored.phones,
    });
  });

  it('counts as hidden by its exact form alone, and only there', () => {
    const odd = ['hmac-sha256:', `${hmac('1')}0`, hmac('1').toUpperCase(), ` ${hmac('1')}`];
    for (const mail of odd) {
      expect(hideStored({ mail })).toEqual({ mail: hmac(JSON.stringify(mail)) });
    }
    // A text of that form from the API proves nothing.
    const mail = hmac('1');
    expect(hide({ mail })).toEqual({ mail: hmac(JSON.stringify(mail)) });
  });
});

it('an HMAC without a key is a mistake of the program', () => {
  expect(() => personalFields([field('email', 'hmac')])).toThrow(TypeError);
  expect(personalFields([field('email', 'mask')]).hide({ email: 'j@x' })).toEqual({ email: MASK });
});

it('so is no field, and a path that names none', () => {
  expect(() => personalFields([])).toThrow(/needs at least one field/);
  expect(() => personalFields([{ path: [], method: 'drop' }])).toThrow(
    /the path of a field with personal data is empty/,
  );
});
