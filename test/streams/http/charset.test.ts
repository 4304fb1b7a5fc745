import { describe, expect, it } from 'vitest';
import { inUtf8, UnknownCharset } from '../../../src/streams/http/charset.ts';

const TEXT = '{"name":"René €"}';

const utf16 = (text: string, order: 'le' | 'be') => {
  const bytes = Buffer.from(text, 'utf16le');
  return order === 'le' ? bytes : bytes.swap16();
};
const utf32 = (text: string, order: 'LE' | 'BE') =>
  Buffer.concat(
    [...text].map((char) => {
      const bytes = Buffer.alloc(4);
      bytes[`writeUInt32${order}`](char.codePointAt(0)!);
      return bytes;
    }),
  );
const latin1 = (text: string) => Buffer.from(text, 'latin1');
const json = (charset: string) => `application/json; charset=${charset}`;

describe('a body is read in its charset', () => {
  it.each<[string, Buffer, string | undefined]>([
    ['UTF-8, undeclared', Buffer.from(TEXT), undefined],
    ['UTF-8', Buffer.from(TEXT), json('utf-8')],
    ['UTF-8 in quotes', Buffer.from(TEXT), json('"UTF-8"')],
    ['UTF-8 by another name', Buffer.from(TEXT), json('utf8')],
    ['UTF-8 that says ASCII', Buffer.from(TEXT), json('us-ascii')],
    ['UTF-8 that says UTF-16', Buffer.from(TEXT), json('utf-16')],
    ['UTF-8 in a charset that is none', Buffer.from(TEXT), json('utf-8-sig')],
    ['UTF-8 with a mark', Buffer.from(`\ufeff${TEXT}`), undefined],
    ['UTF-8 with a mark that says Latin-1', Buffer.from(`\ufeff${TEXT}`), json('iso-8859-1')],
    ['windows-1252', latin1(TEXT.replace('€', '\x80')), json('windows-1252')],
    ['windows-1252 that says Latin-1', latin1(TEXT.replace('€', '\x80')), json('ISO-8859-1')],
    ['Latin-9', latin1(TEXT.replace('€', '\xa4')), json('ISO-8859-15')],
    [
      'Latin-9, other parameters first',
      latin1(TEXT.replace('€', '\xa4')),
      'application/json;v=1 ; Charset = "iso-8859-15"',
    ],
    ['UTF-16 with a mark', utf16(`\ufeff${TEXT}`, 'le'), undefined],
    ['big-endian UTF-16 with a mark', utf16(`\ufeff${TEXT}`, 'be'), json('utf-16')],
    ['UTF-16 with a mark that says UTF-8', utf16(`\ufeff${TEXT}`, 'le'), json('utf-8')],
    ['UTF-16', utf16(TEXT, 'le'), undefined],
    ['big-endian UTF-16', utf16(TEXT, 'be'), json('utf-16')],
    ['UTF-32 with a mark', utf32(`\ufeff${TEXT}`, 'LE'), undefined],
    ['big-endian UTF-32 with a mark', utf32(`\ufeff${TEXT}`, 'BE'), json('utf-32')],
    ['UTF-32', utf32(TEXT, 'LE'), undefined],
    ['big-endian UTF-32', utf32(TEXT, 'BE'), undefined],
  ])('%s', (_, body, contentType) => {
    expect(inUtf8(body, contentType).toString('utf8')).toBe(TEXT);
  });

  it('Cyrillic in windows-1251', () => {
    const body = Buffer.concat([latin1('"'), Buffer.of(0xc2, 0xe8, 0xed, 0xee), latin1('"')]);
    expect(inUtf8(body, json('windows-1251')).toString()).toBe('"Вино"');
  });

  it('and UTF-8 is not copied', () => {
    const body = Buffer.from(TEXT);
    expect(inUtf8(body, json('utf-8'))).toBe(body);
    expect(inUtf8(body, undefined)).toBe(body);
  });

  it('empty', () => expect(inUtf8(Buffer.of(), json('utf-16'))).toHaveLength(0));
});

describe('a body that is not in its charset is an error', () => {
  it.each<[string, Buffer, string | undefined, string]>([
    [
      'half a surrogate pair',
      utf16('\ufeff{"\ud800"}', 'le'),
      undefined,
      'its bytes are not utf-16le',
    ],
    [
      'UTF-32 that is cut off',
      utf32(TEXT, 'BE').subarray(0, -1),
      undefined,
      'its bytes are not utf-32be',
    ],
    ['UTF-32 of no character', utf32('{"\ud800"}', 'LE'), undefined, 'its bytes are not utf-32le'],
    ['GBK that is none', latin1(TEXT.replace('€', '')), json('gbk'), 'its bytes are not gbk'],
    [
      'an unknown charset',
      latin1(TEXT),
      json('x-mac'),
      'the Content-Type declares the charset "x-mac", which is not supported',
    ],
  ])('%s', (_, body, contentType, message) => {
    expect(() => inUtf8(body, contentType)).toThrow(new UnknownCharset(message));
  });
});
