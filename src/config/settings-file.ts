import { isUtf8 } from 'node:buffer';

/** Text of a settings file, or, if the file is not UTF-8, advice that continues a line beginning with the setting's name. */
export type SettingsFileText = { readonly text: string } | { readonly advice: string };

const UTF8_MARK = Buffer.from('\ufeff');
const UTF16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];
const SAVE_AS = 'save the file as UTF-8 (in Windows PowerShell: Out-File -Encoding ascii)';

/**
 * Decodes a settings file: `.env`, an account's file, a secret, certificates. A UTF-8 byte order mark, as Windows editors write one, is
 * dropped. UTF-16, which Windows PowerShell writes with `>`, and other encodings are refused: decoding them as UTF-8 would yield a wrong
 * secret.
 */
export function settingsFileText(bytes: Buffer): SettingsFileText {
  // UTF-16 without a byte order mark is valid UTF-8, with a zero in every other byte.
  if (UTF16_MARKS.some((mark) => bytes.subarray(0, 2).equals(mark)) || bytes.includes(0)) {
    return { advice: `is not UTF-8 but UTF-16 or binary: ${SAVE_AS}` };
  }
  if (!isUtf8(bytes)) return { advice: `is not UTF-8: ${SAVE_AS}` };
  const hasMark = bytes.subarray(0, UTF8_MARK.length).equals(UTF8_MARK);
  return { text: bytes.toString('utf8', hasMark ? UTF8_MARK.length : 0) };
}

/** Whether a value still has the quotes that a shell or `.env` would have removed; `docker run --env-file` keeps them. */
export function isQuoted(text: string): boolean {
  return /^(["']).*\1$/s.test(text.trim());
}

/** Advice for a setting whose value is in quotes; see {@link isQuoted}. */
export const QUOTED =
  'holds its quotes: docker run --env-file and Kubernetes keep them, so remove them there';

/** Whether a secret holds white space that is rarely part of one: at either end, or a line break. */
export function isSpaced(text: string): boolean {
  return text !== text.trim() || /[\r\n\u200b]/.test(text);
}

/** Advice for a secret with white space that rarely belongs to one; see {@link isSpaced}. */
export const SPACED =
  'begins or ends with a space, or has a line break in it: it is sent unchanged, so remove the white space unless it is part of the secret';
