import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../../src/schemas/json/json.ts';
import { JsonNumber } from '../../src/schemas/json/json.ts';
import { timeFormat } from '../../src/description/time-format.ts';

const AT = Date.UTC(2026, 2, 5, 12, 34, 56, 789);
const SECOND = AT - 789;
const pattern = (text: string) => timeFormat({ pattern: text, zone: 'UTC' });

describe.each([
  ['iso', timeFormat('iso'), '2026-03-05T12:34:56.789Z', AT],
  ['epoch-s', timeFormat('epoch-s'), '1772714096', SECOND],
  ['epoch-ms', timeFormat('epoch-ms'), '1772714096789', AT],
  ['http-date', timeFormat('http-date'), 'Thu, 05 Mar 2026 12:34:56 GMT', SECOND],
  ['a pattern', pattern('yyyy-MM-dd.HH:mm:ss'), '2026-03-05.12:34:56', SECOND],
  ['a pattern with text', pattern("dd/MM/yyyy'T'HHmmss,SSS"), '05/03/2026T123456,789', AT],
  ['a pattern of a day', pattern('yyyyMMdd'), '20260305', Date.UTC(2026, 2, 5)],
])('%s', (_, format, text, truncated) => {
  it('reads a time that it has written, truncated to its unit', () => {
    expect(format.write(AT)).toBe(text);
    expect(format.read(text)).toBe(truncated);
  });

  it('writes no time before 1970 or after 9999', () => {
    expect(format.write(-1e15)).toBe(format.write(0));
    expect(format.write(8.64e15)).toBe(format.write(Date.UTC(9999, 11, 31)));
  });

  it.each<JsonValue | undefined>([
    undefined,
    null,
    true,
    '',
    'soon',
    ` ${text}`,
    `${text} `,
    [text],
    {},
  ])('reads no time in %j', (value) => expect(format.read(value)).toBeNull());
});

it('reads epoch times as numbers and as text, with a fraction to the nearest ms', () => {
  const seconds = timeFormat('epoch-s');
  expect(seconds.read(1_772_714_096)).toBe(SECOND);
  expect(seconds.read(1_772_714_096.7891)).toBe(AT);
  expect(seconds.read('1772714096.789')).toBe(AT);
  expect(seconds.read(-1)).toBe(-1_000);
  expect(timeFormat('epoch-ms').read(AT)).toBe(AT);
  expect(timeFormat('epoch-ms').read(1e16)).toBeNull();
  expect(seconds.read(new JsonNumber('1e400'))).toBeNull();
});

it.each([
  ['http-date', timeFormat('http-date'), 'Fri, 05 Mar 2026 12:34:56 GMT'],
  ['http-date', timeFormat('http-date'), 'Tue, 30 Feb 2026 12:34:56 GMT'],
  ['http-date', timeFormat('http-date'), 'Thu, 05 Mar 2026 12:34:56 +0100'],
  ['a pattern', pattern('yyyy-MM-dd.HH:mm:ss'), '2026-02-30.12:34:56'],
  ['a pattern', pattern('yyyy-MM-dd.HH:mm:ss'), '2026-03-05.24:34:56'],
  ['a pattern', pattern('yyyy-MM-dd.HH:mm:ss'), '2026-03-05T12:34:56'],
  ['a pattern', pattern('yyyy-MM-dd.HH:mm:ss'), '2026-3-5.12:34:56'],
])('%s: refuses a time that does not exist or has another form: %s %s', (_, format, text) => {
  expect(format.read(text)).toBeNull();
});
