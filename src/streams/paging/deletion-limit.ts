// The deletion limit (`DELETE_LIMIT_PERCENT`): holds back deletions if too many keys go missing between two full scans.

/**
 * Range of keys whose deletions are held back, because too many keys went missing between two full scans. The keys were last seen after
 * sweep number `from` began and before sweep number `to` began.
 */
export interface HeldBack {
  /** Number of the last sweep before the keys of this range went missing. Each of these keys was seen in this sweep or after it. */
  readonly from: number;
  /** Number of the newest sweep in which keys of this range went missing. No read has shown these keys since this sweep began. */
  readonly to: number;
  /** Sweep number of the full scan that detected that too many keys had gone missing. */
  readonly found: number;
  /**
   * Number of keys of this held-back range that are still missing after the newest full scan. Their deletions are not published unless
   * `isConfirmed`.
   */
  readonly gone: number;
  /**
   * Number of published records when this held-back range was detected, without the records that were missing already. The deletion limit
   * is a percentage of this number.
   */
  readonly known: number;
  /**
   * Whether the operator has raised the deletion limit so far that the keys of this held-back range are within it. If so, their deletions
   * may be published.
   */
  readonly isConfirmed: boolean;
}

export interface MissingKeyCounts {
  /** Number of keys that are missing in this full scan and were not missing in the previous one. */
  readonly fresh: number;
  /** For each held-back range ({@link HeldBack}), in the order of the ranges: number of its keys that are still missing. */
  readonly heldBack: readonly number[];
  readonly all: number;
}

export interface LimitVerdict {
  readonly heldBack: readonly HeldBack[];
  /**
   * Whether enough keys of a {@link HeldBack} range have come back to bring the rest within the deletion limit. The full scans that did not
   * show these keys were then wrong.
   */
  readonly hasRecovered: boolean;
}

/**
 * Number of newly missing keys up to which `DELETE_LIMIT_PERCENT` does not apply, because in a short list a few ordinary deletions exceed
 * the percentage. {@link MAX_OF_SHORT} still applies.
 */
const NEVER_HELD = 20;
/** Number of newly missing keys up to which no deletions are held back, however short the list is. */
const NEVER_HELD_OF_SHORT = 2;
/**
 * Largest fraction of a list's records that may go missing between two full scans. If more go missing, their deletions are held back even
 * if `DELETE_LIMIT_PERCENT` allows them. Exceptions: `DELETE_LIMIT_PERCENT` is 100, or at most `NEVER_HELD_OF_SHORT` keys are missing.
 */
const MAX_OF_SHORT = 1 / 3;

/** Whether too many keys are missing (`gone` of `known`), so that their deletions are held back. Always false if `limitPercent` is 100. */
function isMass(gone: number, known: number, limitPercent: number): boolean {
  if (limitPercent === 100) return false;
  const isMuch = gone > NEVER_HELD && gone > (known * limitPercent) / 100;
  return isMuch || (gone > NEVER_HELD_OF_SHORT && gone > known * MAX_OF_SHORT);
}

export interface SeenMarks {
  /** Whether no read has shown the key since full scan (sweep) number `since` began. */
  isUnseen(key: string, since: number): boolean;
}

export function isHeldBack(key: string, masses: readonly HeldBack[], marks: SeenMarks): boolean {
  return masses.some(({ from, to }) => marks.isUnseen(key, to) && !marks.isUnseen(key, from));
}

/**
 * Applies the deletion limit (`DELETE_LIMIT_PERCENT`) to the keys that a full scan did not show. Returns the ranges of keys
 * ({@link HeldBack}) whose deletions are held back: not published unless `isConfirmed`.
 *
 * - Keys that went missing since the previous full scan are checked together, and only once. If they exceed the limit, they are held back
 *   as one range.
 * - Keys that go missing in the next full scan join that range, because the cause may have set in during a scan.
 * - A range stays held back until the operator raises the limit, or enough of its keys have come back: the rest is then within the limit.
 *
 * @param missing Number of missing keys: all, new ones, and those in each range of `at.heldBack`.
 * @param at `judged` is the number of the previous full scan, `number` that of this one. `known` is the number of published records.
 * `heldBack` has the ranges held back so far.
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
  /**
   * Whether the number of missing keys in a held-back range is above 0 and has not fallen since the previous full scan. If such a range is
   * within the deletion limit now, the operator has raised the limit.
   */
  const isUndiminished = (each: HeldBack) =>
    each.gone > 0 && heldBack.some(({ from, gone }) => from === each.from && each.gone >= gone);
  return {
    heldBack: masses
      .filter((each) => isOver(each) || isUndiminished(each))
      .map((each) => ({ ...each, isConfirmed: !isOver(each) })),
    hasRecovered: counted.some((each, nth) => each.gone < heldBack[nth]!.gone && !isOver(each)),
  };
}
