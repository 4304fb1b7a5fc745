import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';

/** Error for a body in an unsupported charset, or with bytes that are invalid in its charset. */
export class UnknownCharset extends Error {
  override readonly name = 'UnknownCharset';
}

/**
 * Transcodes a body to UTF-8 without a byte order mark. Returns a view of the same memory if nothing has to be transcoded. The charset is
 * the first of these:
 *
 * - the one that the body's first bytes show: a byte order mark, or the zero bytes of UTF-16 and UTF-32;
 * - the declared one, if it is supported and not UTF-16;
 * - UTF-8.
 *
 * @param contentType The `Content-Type` header.
 * @throws UnknownCharset if the declared charset is not supported and the body is not valid UTF-8, or if the bytes are invalid in a charset
 * other than UTF-8.
 */
export function inUtf8(body: Buffer, contentType: string | undefined): Buffer {
  if (startsWith(body, 0xef, 0xbb, 0xbf)) return body.subarray(3);
  const wide = wideCharset(body);
  if (wide) return Buffer.from(wideText(body, wide));
  const declared = /charset\s*=\s*["']?([^\s"';,]+)/i.exec(contentType ?? '')?.[1]?.toLowerCase();
  if (declared === undefined || AS_UTF8.has(declared)) return body; // the JSON parser reports records that are not UTF-8
  const decoder = decoderOf(declared);
  if (!decoder) {
    if (isUtf8(body)) return body;
    const shown = JSON.stringify(declared.slice(0, 40));
    throw new UnknownCharset(
      `the Content-Type declares the charset ${shown}, which is not supported`,
    );
  }
  // Real UTF-16 was recognised above by its zero bytes, so a body that is only declared as UTF-16 is UTF-8.
  if (decoder.encoding === 'utf-8' || decoder.encoding.startsWith('utf-16')) return body;
  if (decoder.encoding === 'windows-1252') return Buffer.from(windows1252(body));
  return Buffer.from(decode(decoder, body));
}

/** Declared charsets whose bodies are treated as UTF-8. A body that is declared as ASCII but contains non-ASCII bytes is usually UTF-8. */
const AS_UTF8 = new Set(['utf-8', 'utf8', 'us-ascii', 'ascii']);

type WideCharset = 'utf-16le' | 'utf-16be' | 'utf-32le' | 'utf-32be';

/** Recognises UTF-32 and UTF-16 by their byte order mark, or by the zero bytes in the first characters (RFC 4627, section 3). */
function wideCharset(body: Buffer): WideCharset | undefined {
  if (startsWith(body, 0xff, 0xfe, 0, 0)) return 'utf-32le';
  if (startsWith(body, 0, 0, 0xfe, 0xff)) return 'utf-32be';
  if (startsWith(body, 0xff, 0xfe)) return 'utf-16le';
  if (startsWith(body, 0xfe, 0xff)) return 'utf-16be';
  if (body.length < 2 || (body[0] !== 0 && body[1] !== 0)) return undefined;
  if (startsWith(body, 0, 0)) return body[2] === 0 && body[3] !== 0 ? 'utf-32be' : undefined;
  if (body[0] === 0) return 'utf-16be';
  return body[2] === 0 && body[3] === 0 ? 'utf-32le' : 'utf-16le';
}

/** Decodes UTF-16 or UTF-32, and removes the byte order mark. `TextDecoder` removes that of UTF-16. */
function wideText(body: Buffer, charset: WideCharset): string {
  if (charset === 'utf-16le' || charset === 'utf-16be') {
    return decode(new TextDecoder(charset, { fatal: true }), body);
  }
  if (body.length % 4 !== 0) throw invalid(charset);
  const points: string[] = [];
  for (let at = 0; at < body.length; at += 4) {
    const point = charset === 'utf-32le' ? body.readUInt32LE(at) : body.readUInt32BE(at);
    if (point > 0x10_ffff || (point >= 0xd800 && point < 0xe000)) throw invalid(charset);
    points.push(String.fromCodePoint(point));
  }
  return points.join('').replace(/^\u{feff}/u, '');
}

function decoderOf(charset: string): TextDecoder | undefined {
  try {
    return new TextDecoder(charset, { fatal: true });
  } catch {
    return undefined; // a RangeError: the Encoding Standard has no such label
  }
}

function decode(decoder: TextDecoder, bytes: Buffer): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw invalid(decoder.encoding);
  }
}

function invalid(charset: string): UnknownCharset {
  return new UnknownCharset(`its bytes are not ${charset}`);
}

/**
 * Decodes windows-1252, which the Encoding Standard also uses for ISO-8859-1. Node's own decoder turns 0x80 to 0x9F into control
 * characters (nodejs/node#56542, present in 20.20); use TextDecoder once every supported Node has the fix.
 */
function windows1252(bytes: Buffer): string {
  return bytes
    .toString('latin1')
    .replace(/[\x80-\x9f]/g, (char) => FROM_0X80[char.charCodeAt(0) - 0x80]!);
}

const FROM_0X80 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

function startsWith(body: Buffer, ...bytes: readonly number[]): boolean {
  return bytes.every((byte, at) => body[at] === byte);
}
