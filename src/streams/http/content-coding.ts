import { promisify } from 'node:util';
import { brotliDecompress, crc32, gunzip, inflate, inflateRaw, inflateRawSync } from 'node:zlib';
import type { ZlibOptions } from 'node:zlib';
import { codeOf } from '../../core/network-error.ts';

/** Codings around each other that are taken off: some servers compress what is compressed already. */
const MAX_LAYERS = 3;

const decompress = {
  gzip: promisify<Buffer, ZlibOptions, Buffer>(gunzip),
  zlib: promisify<Buffer, ZlibOptions, Buffer>(inflate),
  deflate: promisify<Buffer, ZlibOptions, Buffer>(inflateRaw),
  br: promisify<Buffer, ZlibOptions, Buffer>(brotliDecompress),
};

/**
 * The body of an answer without its content coding. The bytes decide, as headers are often wrong: gzip and zlib are known by their
 * first bytes, whatever `Content-Encoding` says; brotli and raw deflate, which have no mark, are tried where they are declared. A body
 * that is none of these is given as it is.
 *
 * @param declared `Content-Encoding`, with commas between several codings.
 * @throws Error of zlib for a body that is cut off or damaged, Error for one in zstd, and for one of more than `maxBytes` without its coding.
 */
export async function withoutCoding(
  sent: Buffer,
  declared: string | undefined,
  maxBytes: number,
): Promise<Buffer> {
  const marked = [...(declared ?? '').toLowerCase().matchAll(/br|deflate/g)].map(([name]) => name);
  let body = sent;
  for (let layer = 0; layer < MAX_LAYERS; layer++) {
    const options = { maxOutputLength: maxBytes };
    if (isGzip(body)) body = await unzipped(body, options);
    else if (isZlib(body)) body = await decompress.zlib(body, options);
    else {
      const outermost = marked.pop(); // codings are listed in the order in which they were applied
      const inner = outermost && (await tried(outermost, body, options));
      if (!inner) {
        if (isZstd(body))
          throw new Error('it is in the content coding zstd, which is not supported');
        return body;
      }
      body = inner;
    }
  }
  return body;
}

/** Decompresses a body by its declared coding; undefined where the body is text that was never compressed. */
async function tried(coding: string, body: Buffer, options: ZlibOptions) {
  try {
    return await decompress[coding === 'br' ? 'br' : 'deflate'](body, options);
  } catch (error) {
    // Compressed bytes may look like text by chance, so this is asked only of what can't be decompressed.
    if (isText(body) && codeOf(error) !== TOO_LARGE) return undefined;
    throw error;
  }
}

/** Some servers and gateways add bytes behind the end of gzip, which zlib refuses: whole members count if their checksums are right. */
async function unzipped(body: Buffer, options: ZlibOptions): Promise<Buffer> {
  try {
    return await decompress.gzip(body, options);
  } catch (error) {
    const plain = codeOf(error) === 'Z_DATA_ERROR' ? wholeMembers(body, options) : undefined;
    if (!plain) throw error;
    return plain;
  }
}

/** Result of zlib with the option `info`, which its types do not know. */
interface Inflated {
  readonly buffer: Buffer;
  /** `bytesWritten`: how many of the bytes it was given belong to the compressed data. */
  readonly engine: { readonly bytesWritten: number };
}

const TOO_LARGE = 'ERR_BUFFER_TOO_LARGE';
/** Length of what follows a member's data: its CRC-32 and its length. */
const TRAILER_BYTES = 8;

/** The members of gzip (RFC 1952) at the beginning of a body, up to the first that is none; undefined when there is no whole one. */
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
      if (trailer + TRAILER_BYTES > body.length) break;
      if (body.readUInt32LE(trailer) !== crc32(plain)) break;
      members.push(plain);
      at = trailer + TRAILER_BYTES;
    }
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    // zlib refuses what follows: no member begins there.
  }
  const [first, ...others] = members;
  return others.length === 0 ? first : Buffer.concat(members);
}

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

/** Deflate with a window of at most 32 KiB, and a header whose check is right (RFC 1950); text begins otherwise. */
function isZlib(body: Buffer): boolean {
  const [method = 0, flags = 0] = body;
  return (
    (method & 0x0f) === 8 && method >> 4 <= 7 && method > 0x20 && (method * 256 + flags) % 31 === 0
  );
}

/** A frame of Zstandard (RFC 8878, 3.1.1). `node:zlib` decompresses them from Node 22.15 on. */
function isZstd(body: Buffer): boolean {
  return body.subarray(0, 4).equals(ZSTD_MAGIC);
}

const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const TEXT_BYTES = 100;

function isText(body: Buffer): boolean {
  return body.subarray(0, TEXT_BYTES).every((byte) => byte >= 0x20 || [9, 10, 13].includes(byte));
}
