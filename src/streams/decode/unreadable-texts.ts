import { hash } from 'node:crypto';
import { endOfValue, isDelimiter, skipSpace } from '../../schemas/json/json-bytes.ts';

/** Texts that were given up as no JSON: kept for all requests of one list, so that each is tried out once. */
export interface UnreadableTexts {
  /** Whether a text was given up. */
  readonly has: (text: Buffer) => boolean;
  /** Gives a text up. What is kept of it is its length and a digest. */
  readonly add: (text: Buffer) => void;
  /** Where the element that begins at a place ends: as its text is known, else as brackets and quotes say. */
  readonly endOf: (page: Buffer, at: number) => number;
}

/** Some hundred bytes each. Of more they are tried out again, which costs requests and nothing else. */
const MAX_KEPT = 10_000;

/** Of a list of which nothing was given up yet. */
export function unreadableTexts(): UnreadableTexts {
  const byLength = new Map<number, Set<string>>();
  let kept = 0;
  const has = (text: Buffer): boolean => byLength.get(text.length)?.has(digestOf(text)) ?? false;
  return {
    has,
    add: (text) => {
      if (has(text)) return;
      if (kept === MAX_KEPT) {
        byLength.clear();
        kept = 0;
      }
      kept += 1;
      const digests = byLength.get(text.length) ?? new Set();
      byLength.set(text.length, digests.add(digestOf(text)));
    },
    endOf: (page, at) => {
      for (const length of byLength.keys()) {
        const end = at + length;
        if (!isDelimiter(page[skipSpace(page, end)])) continue;
        if (has(page.subarray(at, end))) return end;
      }
      return endOfValue(page, at);
    },
  };
}

function digestOf(text: Buffer): string {
  return hash('sha256', text, 'base64');
}
