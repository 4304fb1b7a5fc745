import { describeError } from '../../core/errors.ts';

/** Of an error's line, at most. */
export const MAX_ERROR = 500;

/** A text of at most so many characters; of a longer one the beginning, with `…` at its end. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  // Not in the middle of a character that takes two.
  const end = /[\uD800-\uDBFF]/.test(text.charAt(most - 2)) ? most - 2 : most - 1;
  return `${text.slice(0, end)}…`;
}

/** An error as a line that is not too long. */
export function errorLine(error: unknown): string {
  return shortened(describeError(error), MAX_ERROR);
}

/** Of several names, at most so many; and of each so many characters. */
const MAX_NAMES = 5;
const MAX_NAME = 60;

/** Names that somebody else has given, no more of them than a line bears. */
export function fewNames(names: readonly string[]): string[] {
  return names.slice(0, MAX_NAMES).map((name) => shortened(name, MAX_NAME));
}
