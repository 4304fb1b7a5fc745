import { isUtf8 } from 'node:buffer';

/**
 * JSON text in its bytes.
 *
 * @throws SyntaxError when they are not UTF-8: decoding them would put U+FFFD in their place without a word.
 */
export function jsonText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8');
  return bytes.toString('utf8');
}

/** Bytes that are no JSON as text that loses none of them: those that are not UTF-8 as a character each, as in ISO-8859-1. */
export function textOfAnyBytes(bytes: Buffer): string {
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');
}
