import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';

/** A body whose characters can't be told. */
export class UnknownCharset extends Error {
  override readonly name = 'UnknownCharset';
}

/**
 * A body in UTF-8 without a byte order mark, as all that read pages take it; the same memory where nothing is to be done.
 *
 * A mark and the zero bytes of UTF-16 and UTF-32 come before the declared charset, as JSON begins with ASCII. A charset that is not
 * known is taken for UTF-8 if the bytes are valid in it. Bytes that are declared as UTF-8, or not declared, are not looked at here:
 * records that are not UTF-8 are no JSON for whoever decodes them.
 *
 * @param contentType The `Content-Type` header.
 * @throws UnknownCharset for bytes that are not valid in the declared charset, or when nothing is known of it.
 */
export function inUtf8(body: Buffer, contentType: string | undefined): Buffer {
  if (startsWith(body, 0xef, 0xbb, 0xbf)) return body.subarray(3);
  const wide = wideCharset(body);
  if (wide) return Buffer.from(wideText(body, wide));
  const declared = /charset\s*=\s*["']?([^\s"';,]+)/i.exec(contentType ?? '')?.[1]?.toLowerCase();
  if (declared === undefined || AS_UTF8.has(declared)) return body;
  const decoder = decoderOf(declared);
  if (!decoder) {
    if (isUtf8(body)) return body;
    throw new UnknownCharset(`the charset ${printable(declared)} of Content-Type is not known`);
  }
  // UTF-16 was found above, if it is: the others are what bytes without a zero are in.
  if (decoder.encoding === 'utf-8' || decoder.encoding.startsWith('utf-16')) return body;
  if (decoder.encoding === 'windows-1252') return Buffer.from(windows1252(body));
  return Buffer.from(decode(decoder, body));
}

/** Names of UTF-8 in use, and of ASCII, for which it stands in: a body that says ASCII and is not is UTF-8 most of the time. */
const AS_UTF8 = new Set(['utf-8', 'utf8', 'us-ascii', 'ascii']);

interface WideCharset {
  readonly name: 'utf-16le' | 'utf-16be' | 'utf-32le' | 'utf-32be';
  /** Length of the byte order mark. */
  readonly mark: number;
}

/** UTF-32 or UTF-16, by its mark or by where the zero bytes of its first two characters are (RFC 4627, 3). */
function wideCharset(body: Buffer): WideCharset | undefined {
  if (startsWith(body, 0xff, 0xfe, 0, 0)) return { name: 'utf-32le', mark: 4 };
  if (startsWith(body, 0, 0, 0xfe, 0xff)) return { name: 'utf-32be', mark: 4 };
  if (startsWith(body, 0xff, 0xfe)) return { name: 'utf-16le', mark: 2 };
  if (startsWith(body, 0xfe, 0xff)) return { name: 'utf-16be', mark: 2 };
  const [first, second, third, fourth] = body;
  if (first === undefined || second === undefined || (first !== 0 && second !== 0))
    return undefined;
  if (first === 0 && second === 0) {
    return third === 0 && fourth !== 0 ? { name: 'utf-32be', mark: 0 } : undefined;
  }
  if (first === 0) return { name: 'utf-16be', mark: 0 };
  return { name: third === 0 && fourth === 0 ? 'utf-32le' : 'utf-16le', mark: 0 };
}

function wideText(body: Buffer, { name, mark }: WideCharset): string {
  const text = body.subarray(mark);
  if (name === 'utf-16le' || name === 'utf-16be') {
    return decode(new TextDecoder(name, { fatal: true }), text);
  }
  if (text.length % 4 !== 0) throw invalid(name);
  const points: string[] = [];
  for (let at = 0; at < text.length; at += 4) {
    const point = name === 'utf-32le' ? text.readUInt32LE(at) : text.readUInt32BE(at);
    if (point > 0x10_ffff || (point >= 0xd800 && point < 0xe000)) throw invalid(name);
    points.push(String.fromCodePoint(point));
  }
  return points.join('');
}

function decoderOf(charset: string): TextDecoder | undefined {
  try {
    return new TextDecoder(charset, { fatal: true });
  } catch {
    return undefined; // a RangeError: no label of the Encoding Standard
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
 * Text in windows-1252, which the Encoding Standard takes ISO-8859-1 for, too. Node's own decoder makes control characters of 0x80 to
 * 0x9F (nodejs/node#56542, in 20.20 as well).
 */
function windows1252(bytes: Buffer): string {
  return bytes
    .toString('latin1')
    .replace(/[\x80-\x9f]/g, (char) => FROM_0X80[char.charCodeAt(0) - 0x80]!);
}

const FROM_0X80 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/** A charset's name as it may be logged: it comes from the server. */
function printable(name: string): string {
  return JSON.stringify(name.slice(0, 40));
}

function startsWith(body: Buffer, ...bytes: readonly number[]): boolean {
  return bytes.every((byte, at) => body[at] === byte);
}
