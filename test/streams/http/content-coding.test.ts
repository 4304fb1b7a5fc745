import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { withoutCoding } from '../../../src/streams/http/content-coding.ts';

const TEXT = `{"data":[${'{"name":"Grüner Veltliner"},'.repeat(50)}{}]}`;
const plain = Buffer.from(TEXT);
const LIMIT = 100_000;

const text = async (body: Buffer, declared?: string) =>
  (await withoutCoding(body, declared, LIMIT)).toString();

/** gzip with all optional parts of a header. */
function withHeader(body: Buffer): Buffer {
  const head = Buffer.concat([
    Buffer.of(0x1f, 0x8b, 8, 2 | 4 | 8 | 16, 0, 0, 0, 0, 0, 3),
    Buffer.of(3, 0, 1, 2, 3),
    Buffer.from('name\0comment\0'),
    Buffer.of(0, 0),
  ]);
  return Buffer.concat([head, gzipSync(body).subarray(10)]);
}

describe('an answer is read whatever its Content-Encoding says', () => {
  it.each([
    undefined,
    '',
    'identity',
    'none',
    'UTF-8',
    'gzip',
    'x-gzip',
    'br',
    'deflate',
    'gzip, identity',
  ])('plain JSON declared as %s', async (declared) =>
    expect(await text(plain, declared)).toBe(TEXT),
  );

  it.each([
    undefined,
    '',
    'gzip',
    'X-GZIP',
    'gzip, identity',
    'identity',
    'utf-8',
    'br',
    'deflate',
  ])('gzip declared as %s', async (declared) =>
    expect(await text(gzipSync(plain), declared)).toBe(TEXT),
  );

  it.each<[string, Buffer, string | undefined]>([
    ['brotli', brotliCompressSync(plain), 'br'],
    ['deflate with the header of zlib', deflateSync(plain), 'deflate'],
    ['deflate with the header of zlib, undeclared', deflateSync(plain), undefined],
    ['deflate without a header', deflateRawSync(plain), 'deflate'],
    ['gzip twice', gzipSync(gzipSync(plain)), 'gzip'],
    ['gzip in brotli', brotliCompressSync(gzipSync(plain)), 'gzip, br'],
    ['brotli in gzip', gzipSync(brotliCompressSync(plain)), 'br, gzip'],
    [
      'several members',
      Buffer.concat([gzipSync(plain.subarray(0, 99)), gzipSync(plain.subarray(99))]),
      'gzip',
    ],
    ['brotli that begins like an array', brotliCompressSync(Buffer.from(TEXT.repeat(50))), 'br'],
  ])('%s', async (_, body, declared) => {
    const expected = body[0] === 0x5b ? TEXT.repeat(50) : TEXT;
    expect((await withoutCoding(body, declared, LIMIT)).toString()).toBe(expected);
  });

  it.each<[string, string | Buffer]>([
    ['a line end', '\r\n'],
    ['zeros', Buffer.alloc(20)],
    ['a note of a proxy', '<!-- served by cache 7 -->'],
  ])('gzip followed by %s', async (_, trailing) => {
    const more = Buffer.from(trailing);
    expect(await text(Buffer.concat([gzipSync(plain), more]), 'gzip')).toBe(TEXT);
    expect(await text(Buffer.concat([gzipSync(''), withHeader(plain), more]), 'gzip')).toBe(TEXT);
  });

  it('an error page that claims to be compressed', async () => {
    expect(await text(Buffer.from('Unauthorized'), 'br')).toBe('Unauthorized');
    expect(await text(Buffer.from(''), 'br')).toBe('');
  });
});

describe('an answer that is not whole is an error', () => {
  const flipped = (body: Buffer, at: number) => {
    const other = Buffer.from(body);
    other[at]! ^= 1;
    return other;
  };
  it.each<[string, Buffer, string]>([
    ['gzip that is cut off', gzipSync(plain).subarray(0, -1), 'gzip'],
    ['gzip of another checksum', flipped(gzipSync(plain), gzipSync(plain).length - 8), 'gzip'],
    [
      'gzip with a damaged second member',
      Buffer.concat([gzipSync(plain), flipped(gzipSync(plain), 12)]),
      'gzip',
    ],
    [
      'gzip with a second member of another checksum',
      Buffer.concat([gzipSync(plain), flipped(gzipSync(plain), gzipSync(plain).length - 8)]),
      'gzip',
    ],
    ['zlib that is cut off', deflateSync(plain).subarray(0, -5), 'deflate'],
    ['deflate that is cut off', deflateRawSync(plain).subarray(0, -1), 'deflate'],
    ['brotli that is cut off', brotliCompressSync(plain).subarray(0, -1), 'br'],
    ['gzip of more than may come', gzipSync(Buffer.alloc(LIMIT + 1)), 'gzip'],
    ['gzip in gzip of more', gzipSync(gzipSync(Buffer.alloc(LIMIT + 1))), 'gzip'],
    ['brotli of more', brotliCompressSync(Buffer.alloc(LIMIT + 1)), 'br'],
    [
      'gzip of more, followed by a line end',
      Buffer.concat([gzipSync(Buffer.alloc(LIMIT + 1)), Buffer.from('\n')]),
      'gzip',
    ],
  ])('%s', async (_, body, declared) => {
    await expect(withoutCoding(body, declared, LIMIT)).rejects.toThrow();
  });
});

it.each([undefined, 'zstd', 'gzip'])('zstd is named, declared as %s', async (declared) => {
  const body = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x24, 0, 1, 0, 0]);
  await expect(withoutCoding(body, declared, LIMIT)).rejects.toThrow('zstd');
});
