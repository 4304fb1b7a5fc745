import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dateDays,
  dateText,
  instantText,
  utcMillis,
  zonedMillis,
} from '../../../src/schemas/avro/instant.ts';

const FIRST = Date.parse('0000-01-01T00:00:00.000Z');
const LAST = Date.parse('9999-12-31T23:59:59.999Z');
const times = () => fc.integer({ min: FIRST, max: LAST });

describe('utcMillis', () => {
  it('reads back every time of the years 0 to 9999', () => {
    fc.assert(
      fc.property(times(), (ms) => {
        const text = new Date(ms).toISOString();
        expect(utcMillis(text)).toBe(ms);
        expect(utcMillis(text.replace('Z', '+00:00'))).toBe(ms);
        expect(utcMillis(text.replace(/\.\d+/, ''))).toBe(Math.floor(ms / 1_000) * 1_000);
        expect(utcMillis(text.replace(/:\d\d\.\d+/, ''))).toBe(Math.floor(ms / 60_000) * 60_000);
        expect(instantText(utcMillis(text))).toBe(text);
      }),
      { numRuns: 1_000 },
    );
  });

  it('reads fractions of one and two digits', () => {
    expect(utcMillis('1970-01-01T00:00:00.5Z')).toBe(500);
    expect(utcMillis('1970-01-01T00:00:00.05Z')).toBe(50);
  });

  it.each([
    '2023-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2024-04-31T00:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-00-01T00:00:00Z',
    '2024-01-00T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T23:60:00Z',
    '2024-01-01T23:59:60Z',
    '+002024-01-01T00:00:00Z',
    '2024-01-01Z',
    '2024-01-01',
    '2024-1-1T00:00:00Z',
    '2024-01-01T00:00:Z',
    '2024-01-01T00:00:0Z',
    '2024-01-01T00:00:00.Z',
    '2024-01-01T0x:00:00Z',
    'Z',
    '',
    'yesterday',
  ])('refuses %s, and so does zonedMillis', (text) => {
    expect(utcMillis(text)).toBeNaN();
    expect(zonedMillis(text)).toBeNaN();
  });

  it.each([
    '2024-01-01T00:00:00',
    '2024-01-01T00:00:00+01:00',
    '2024-01-01T00:00:00-00:00',
    '2024-01-01T00:00:00.0000Z',
    '2024-01-01 00:00:00Z',
    '2024-01-01t00:00:00z',
  ])('leaves %s to zonedMillis', (text) => {
    expect(utcMillis(text)).toBeNaN();
    expect(zonedMillis(text)).not.toBeNaN();
  });
});

describe('zonedMillis', () => {
  it.each([
    ['2024-05-01T12:00:00+02:00', '2024-05-01T10:00:00.000Z'],
    ['2024-05-01T12:00:00-0730', '2024-05-01T19:30:00.000Z'],
    ['2024-05-01T12:00-07', '2024-05-01T19:00:00.000Z'],
    ['2024-05-01T12:00:00', '2024-05-01T12:00:00.000Z'],
    ['2024-05-01 12:00:00.25', '2024-05-01T12:00:00.250Z'],
    ['2024-05-01T12:00:00.123999Z', '2024-05-01T12:00:00.123Z'],
    ['1969-12-31T23:59:59.9999Z', '1969-12-31T23:59:59.999Z'],
    ['2024-05-01T12:00:00,5Z', '2024-05-01T12:00:00.500Z'],
    ['2024-01-01T00:30:00+01:00', '2023-12-31T23:30:00.000Z'],
  ])('reads %s as %s', (text, utc) => {
    expect(zonedMillis(text)).toBe(Date.parse(utc));
  });

  it.each(['2024-05-01T12:00:00+24:00', '2024-05-01T12:00:00+01:60', '2024-05-01T12:00.5Z'])(
    'refuses %s',
    (text) => {
      expect(zonedMillis(text)).toBeNaN();
    },
  );
});

describe('dateDays', () => {
  it('knows every day of 10,000 years, and no other', () => {
    for (let year = 0; year < 10_000; year += year < 1890 || year > 2110 ? 7 : 1) {
      for (let month = 0; month <= 13; month++) {
        for (let day = 0; day <= 32; day += day === 1 ? 26 : 1) {
          const date = new Date(0);
          date.setUTCFullYear(year, month - 1, day);
          const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
          const [y, m, d] = [pad(year, 4), pad(month, 2), pad(day, 2)];
          const expected = exists ? date.getTime() / 86_400_000 : NaN;
          if (!Object.is(dateDays(`${y}-${m}-${d}`), expected)) {
            expect(`${y}-${m}-${d} ${dateDays(`${y}-${m}-${d}`)}`).toBe(expected);
          }
        }
      }
    }
  });

  it('is read back by dateText', () => {
    fc.assert(
      fc.property(times(), (ms) => {
        const text = new Date(ms).toISOString().slice(0, 10);
        expect(dateText(dateDays(text))).toBe(text);
      }),
    );
  });

  it.each(['1980-02-29T00:00:00Z', '1980-2-29', '19800229', '1980/02/29', '02-29-1980', ''])(
    'refuses %s',
    (text) => {
      expect(dateDays(text)).toBeNaN();
    },
  );
});

const pad = (number: number, length: number) => String(number).padStart(length, '0');
