// The deletion limit (`DELETE_LIMIT_PERCENT`): holds back deletions if too many keys go missing between two full scans.

/**
 * A held-back range: keys that went missing between the same two full scans, too many at once to be published as deleted. The sweeps that
 * last saw these keys have numbers from `from` (included) to `to` (excluded).
 */
export interface HeldBack {
  /** Number of the last full scan before the first keys of the range went missing. */
  readonly from: number;
  /** Number of the newest full scan whose newly missing keys belong to the range. */
  readonly to: number;
  /** Number of the full scan that detected the range. */
  readonly found: number;
  /** Number of keys of the range that were missing in the newest full scan. */
  readonly gone: number;
  /** Number of published records when the range was detected, except those that were missing before it. The limit is a percentage of it. */
  readonly known: number;
  /** Whether the range is within the limit because the operator has raised it. The deletions may then be published. */
  readonly isConfirmed: boolean;
}

export interface MissingKeyCounts {
  /** Number of missing keys that the previous full scan did not miss. */
  readonly fresh: number;
  /** Number of missing keys in each held-back range. */
  readonly heldBack: readonly number[];
  readonly all: number;
}

export interface LimitVerdict {
  readonly heldBack: readonly HeldBack[];
  /**
   * Whether so many keys of a range were seen again that the rest is within the limit. The scans that missed those keys were then wrong.
   */
  readonly hasRecovered: boolean;
}

/**
 * Maximum number of newly missing keys for which `DELETE_LIMIT_PERCENT` is not applied: in a short list, a few ordinary deletions exceed
 * the percentage.
 */
const NEVER_HELD = 20;
/** Maximum number of newly missing keys that are never held back, not even if they are more than {@link MAX_OF_SHORT} of the list. */
const NEVER_HELD_OF_SHORT = 2;
/**
 * Fraction of a list's records. If a larger fraction goes missing between two full scans, and more than {@link NEVER_HELD_OF_SHORT} keys,
 * the deletions are held back, even if they are at most {@link NEVER_HELD} or within `DELETE_LIMIT_PERCENT`.
 */
const MAX_OF_SHORT = 1 / 3;

/** Whether `gone` missing keys of `known` records are too many. The limit is off at 100 percent. */
function isMass(gone: number, known: number, limitPercent: number): boolean {
  if (limitPercent === 100) return false;
  const isMuch = gone > NEVER_HELD && gone > (known * limitPercent) / 100;
  return isMuch || (gone > NEVER_HELD_OF_SHORT && gone > known * MAX_OF_SHORT);
}

export interface SeenMarks {
  /** Whether no read has seen the key since sweep number `since` began. */
  isUnseen(key: string, since: number): boolean;
}

export function isHeldBack(key: string, masses: readonly HeldBack[], marks: SeenMarks): boolean {
  return masses.some(({ from, to }) => marks.isUnseen(key, to) && !marks.isUnseen(key, from));
}

/**
 * Checks the keys missing from a full scan against the deletion limit. The keys that the previous full scan still showed are checked
 * together, and only once: keys that were within the limit are never held back later, however many others wait for their proof. If the keys
 * exceed the limit, they are held back, as a range of numbers of the sweeps that saw them last. Keys that go missing in the next scan join
 * that range, because the cause may have set in during a scan. A range is held back for as long as its keys are missing, even if the list
 * grows, until so many of its keys are seen again that the rest is within the limit.
 *
 * @param at `judged`: number of the previous full scan; `number`: number of this full scan; `known`: number of published records.
 */
export function judgeMissing(
  missing: MissingKeyCounts,
  at: {
    readonly judged: number;
    readonly number: number;
    readonly known: number;
    readonly heldBack: readonly HeldBack[];
    readonly limitPercent: number;
  },
): LimitVerdict {
  const { judged, number, heldBack, limitPercent } = at;
  const counted = heldBack.map((each, nth) => ({ ...each, gone: missing.heldBack[nth]! }));
  const known = at.known - (missing.all - missing.fresh); // keys that are not fresh were already missing in the previous scan
  const range = { from: judged, to: number, found: number, isConfirmed: false };
  const fresh: HeldBack = { ...range, gone: missing.fresh, known };
  const isOver = (each: HeldBack) => isMass(each.gone, each.known, limitPercent);
  const isBefore = (each: HeldBack) => each.found === judged && isOver(each);
  const masses = counted.some(isBefore)
    ? counted.map((each) =>
        isBefore(each) ? { ...each, to: number, gone: each.gone + fresh.gone } : each,
      )
    : [...counted, fresh];
  /** Whether no key of a range was seen again. If such a range is within the limit, the operator has raised the limit. */
  const isWhole = (each: HeldBack) =>
    each.gone > 0 && heldBack.some(({ from, gone }) => from === each.from && each.gone >= gone);
  return {
    heldBack: masses
      .filter((each) => isOver(each) || isWhole(each))
      .map((each) => ({ ...each, isConfirmed: !isOver(each) })),
    hasRecovered: counted.some((each, nth) => each.gone < heldBack[nth]!.gone && !isOver(each)),
  };
}
