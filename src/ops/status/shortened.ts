import { describeError } from '../../core/errors.ts';

/** Maximum length of an error's text in the status, in characters. */
export const MAX_ERROR = 500;

/** Shortens a text to at most `most` characters (UTF-16 code units). A shortened text ends with `…`. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  // Do not split a surrogate pair.
  const end = /[\uD800-\uDBFF]/.test(text.charAt(most - 2)) ? most - 2 : most - 1;
  return `${text.slice(0, end)}…`;
}

export function errorLine(error: unknown): string {
  return shortened(describeError(error), MAX_ERROR);
}

/**
 * Maximum number of names, such as names of fields, that one text lists. Further names are omitted, and each name is shortened to
 * `MAX_NAME` characters.
 */
const MAX_NAMES = 5;
const MAX_NAME = 60;

export function fewNames(names: readonly string[]): string[] {
  return names.slice(0, MAX_NAMES).map((name) => shortened(name, MAX_NAME));
}
