/** Keys that vanished between the same two complete readings, and are too many to be published as deleted. */
export interface HeldBack {
  /** The keys' `seen` marks are at least this: the complete reading that last had them. */
  readonly from: number;
  /** And less than this: the newest complete reading whose missing keys belong to the mass. */
  readonly to: number;
  /** The complete reading that found the mass. */
  readonly found: number;
  /** Number of these keys when they were counted last. */
  readonly gone: number;
  /** Number of records that the list had in reading `from`. */
  readonly known: number;
  /** Whether the operator has raised the limit since, so that the keys may be deleted. */
  readonly isConfirmed: boolean;
}

/** Keys whose absence a complete reading shows, counted by when they vanished. */
export interface MissingKeys {
  /** Keys that the complete reading before this one still had. */
  readonly fresh: number;
  /** Keys in each range of `heldBack`, in its order. */
  readonly heldBack: readonly number[];
  readonly all: number;
}

/** The limit's judgement of the keys that a complete reading lacks. */
export interface LimitVerdict {
  readonly heldBack: readonly HeldBack[];
  /** Whether records of a mass that was held back have come back: the list has been wrong, and so may be earlier readings. */
  readonly hasRecovered: boolean;
}

/** The limit never holds back this many keys of a list, whatever its percentage: small lists lose a few at a time. */
const FEW = 20;
/** The same for a list so short that {@link FEW} are most of it. */
const FEWEST = 2;
const MAX_OF_SHORT = 1 / 3;

/** Whether so many records are too many to vanish between two complete readings. 100 percent is no limit. */
function isMass(gone: number, known: number, limitPercent: number): boolean {
  if (limitPercent === 100) return false;
  const isMuch = gone > FEW && gone > (known * limitPercent) / 100;
  return isMuch || (gone > FEWEST && gone > known * MAX_OF_SHORT);
}

/** Marks that tell when a key was seen last; as a store has them. */
export interface SeenMarks {
  /** Whether nothing has seen the key since the sweep of this number began. */
  isUnseen(key: string, since: number): boolean;
}

/** Whether a key vanished with one of these masses. */
export function isIn(key: string, masses: readonly HeldBack[], marks: SeenMarks): boolean {
  return masses.some(({ from, to }) => marks.isUnseen(key, to) && !marks.isUnseen(key, from));
}

/**
 * Judges the keys that a complete reading lacks. Those that the complete reading before still had are judged together, once: a deletion
 * that was not a part of a mass when it was found is never held back later, however many wait for their proof. Keys that vanish in the
 * reading after a mass belong to it, as a mass may strike in the middle of a reading. A mass stays one for as long as its keys are missing,
 * however the list grows, until so many are back that the rest is within the limit.
 *
 * @param judged The complete reading before.
 * @param number This one.
 * @param known Number of published records.
 */
export function judgeMissing(
  missing: MissingKeys,
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
  const known = at.known - (missing.all - missing.fresh); // the older ones were missing in the reading before, too
  const range = { from: judged, to: number, found: number, isConfirmed: false };
  const fresh: HeldBack = { ...range, gone: missing.fresh, known };
  const isOver = (each: HeldBack) => isMass(each.gone, each.known, limitPercent);
  const isBefore = (each: HeldBack) => each.found === judged && isOver(each);
  const masses = counted.some(isBefore)
    ? counted.map((each) =>
        isBefore(each) ? { ...each, to: number, gone: each.gone + fresh.gone } : each,
      )
    : [...counted, fresh];
  /** Whether nothing of a mass came back: if it is within the limit now, that is another limit. */
  const isWhole = (each: HeldBack) =>
    each.gone > 0 && heldBack.some(({ from, gone }) => from === each.from && each.gone >= gone);
  return {
    heldBack: masses
      .filter((each) => isOver(each) || isWhole(each))
      .map((each) => ({ ...each, isConfirmed: !isOver(each) })),
    hasRecovered: counted.some((each, nth) => each.gone < heldBack[nth]!.gone && !isOver(each)),
  };
}
