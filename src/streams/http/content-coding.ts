import { promisify } from 'node:util';
import { brotliDecompress, crc32, gunzip, inflate, inflateRaw, inflateRawSync } from 'node:zlib';
import type { ZlibOptions } from 'node:zlib';
import { codeOf } from '../../core/errors.ts';

/** Maximum number of nested content codings; some servers compress twice. If it is too large, crafted bodies cost CPU. */
const MAX_LAYERS = 3;

const decompress = {
  gzip: promisify<Buffer, ZlibOptions, Buffer>(gunzip),
  zlib: promisify<Buffer, ZlibOptions, Buffer>(inflate),
  deflate: promisify<Buffer, ZlibOptions, Buffer>(inflateRaw),
  br: promisify<Buffer, ZlibOptions, Buffer>(brotliDecompress),
};

/**
 * Decompresses a body. Gzip and zlib are recognised by their first bytes, because `Content-Encoding` is often wrong. Brotli and raw deflate
 * are tried only where the header declares them. Any other body except zstd is returned unchanged.
 *
 * @param declared The `Content-Encoding` header; several codings are separated by commas.
 * @param maxBytes Maximum size of the decompressed body, in bytes.
 * @throws Error of zlib for a truncated or damaged body, or for one of more than `maxBytes`; Error for a body in zstd.
 */
export function withoutCoding(
  sent: Buffer,
  declared: string | undefined,
  maxBytes: number,
): Buffer | Promise<Buffer> {
  const unmarked = declared?.toLowerCase().match(/br|deflate/g) ?? [];
  const isPlain = unmarked.length === 0 && !isGzip(sent) && !isZlib(sent) && !isZstd(sent);
  return isPlain ? sent : withoutLayers(sent, unmarked, maxBytes);
}

/**
 * Decompresses a response body layer by layer, the outermost first. `unmarked` lists the codings in the header that have no magic number
 * (Brotli and deflate). Each decompressed size is limited to `maxBytes`.
 */
async function withoutLayers(sent: Buffer, unmarked: string[], maxBytes: number): Promise<Buffer> {
  let body = sent;
  for (let layer = 0; layer < MAX_LAYERS; layer++) {
    const options = { maxOutputLength: maxBytes };
    if (isGzip(body)) body = await unzipped(body, options);
    else if (isZlib(body)) body = await decompress.zlib(body, options);
    else {
      const outermost = unmarked.pop(); // codings are listed in the order in which they were applied
      const inner = outermost && (await decompressUnmarked(outermost, body, options));
      if (!inner) {
        if (!isZstd(body)) return body;
        throw new Error(
          'the response is compressed with zstd, which was not requested and is not supported: let the server, or the proxy in front of it, compress its responses with gzip or not at all',
        );
      }
      body = inner;
    }
  }
  return body;
}

/**
 * Decompresses a body as brotli or deflate. Returns undefined for plain text that can't be decompressed: the `Content-Encoding` header is
 * then wrong. Other failures, and too large a result, are thrown.
 */
async function decompressUnmarked(coding: string, body: Buffer, options: ZlibOptions) {
  try {
    return await decompress[coding === 'br' ? 'br' : 'deflate'](body, options);
  } catch (error) {
    // Compressed bytes may look like text by chance, so only a body that can't be decompressed is checked for text.
    if (isText(body) && codeOf(error) !== TOO_LARGE) return undefined;
    throw error;
  }
}

/** Decompresses gzip. If zlib refuses the bytes after the last gzip member, the content of the members is returned. */
async function unzipped(body: Buffer, options: ZlibOptions): Promise<Buffer> {
  try {
    return await decompress.gzip(body, options);
  } catch (error) {
    const plain = codeOf(error) === 'Z_DATA_ERROR' ? wholeMembers(body, options) : undefined;
    if (!plain) throw error;
    return plain;
  }
}

/** Result of zlib with the option `info`, which `@types/node` does not declare. `bytesWritten` is the number of input bytes used. */
interface Inflated {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

const TOO_LARGE = 'ERR_BUFFER_TOO_LARGE';
const TRAILER_BYTES = 8;

/**
 * Returns the content of the gzip members (RFC 1952) at the beginning of a body; undefined if one of them is truncated or damaged. Other
 * bytes after the last member are ignored.
 */
function wholeMembers(body: Buffer, options: ZlibOptions): Buffer | undefined {
  const members: Buffer[] = [];
  let at = 0;
  try {
    while (isGzip(body.subarray(at))) {
      const data = at + headerLength(body.subarray(at));
      const { buffer: plain, engine } = inflateRawSync(body.subarray(data), {
        ...options,
        info: true,
      }) as unknown as Inflated;
      const trailer = data + engine.bytesWritten;
      if (trailer + TRAILER_BYTES > body.length) return undefined;
      if (body.readUInt32LE(trailer) !== crc32(plain)) return undefined;
      members.push(plain);
      at = trailer + TRAILER_BYTES;
    }
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined; // an error of zlib, or a body that is too short
  }
  return Buffer.concat(members);
}

/** Flag of a gzip member (RFC 1952, section 2.3.1): the member's header ends with a checksum. */
const FLAG_CRC = 2;
const FLAG_EXTRA = 4;
const FLAG_NAME = 8;
const FLAG_COMMENT = 16;

function headerLength(member: Buffer): number {
  const flags = member[3] ?? 0;
  let at = 10;
  if (flags & FLAG_EXTRA) at += 2 + member.readUInt16LE(at);
  for (const flag of [FLAG_NAME, FLAG_COMMENT]) if (flags & flag) at = member.indexOf(0, at) + 1;
  return flags & FLAG_CRC ? at + 2 : at;
}

function isGzip(body: Buffer): boolean {
  return body[0] === 0x1f && body[1] === 0x8b;
}

/** Whether a body begins with a zlib header (RFC 1950): method deflate, window of 1 to 32 KiB, valid checksum. */
function isZlib(body: Buffer): boolean {
  const [method = 0, flags = 0] = body;
  return (
    (method & 0x0f) === 8 && method >> 4 <= 7 && method > 0x20 && (method * 256 + flags) % 31 === 0
  );
}

/**
 * Whether a body is Zstandard (RFC 8878), which is not supported. Support can be added once Node 22.15, whose `node:zlib` has zstd, is the
 * oldest supported version.
 */
function isZstd(body: Buffer): boolean {
  return body.length >= 4 && body.readUInt32BE(0) === ZSTD_MAGIC;
}

const ZSTD_MAGIC = 0x28b52ffd;
const TEXT_BYTES = 100;

function isText(body: Buffer): boolean {
  return body.subarray(0, TEXT_BYTES).every((byte) => byte >= 0x20 || [9, 10, 13].includes(byte));
}
