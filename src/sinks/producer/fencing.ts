// Whether a commit failed because another producer of its transactional id was opened.

import { CellarstreamError } from '../../core/errors.ts';
import { isEpochError } from '../client/kafka-error.ts';

/** How long a process whose epoch is over waits for a replacement to say so in the cursor. */
export const CLAIM_GRACE_MS = 3_000;

/**
 * A commit of a sink whose epoch is over. Another one was opened, perhaps by a process that ended before its claim, or
 * by a late copy of this one's own opening: what is in the log says whose it is, when it is opened again.
 */
export async function leftUndecided<T>(commit: () => Promise<T>): Promise<T> {
  try {
    return await commit();
  } catch (error) {
    if (!isEpochError(error)) throw error;
    throw new CellarstreamError('COMMIT_FAILED', 'the commit came from an outdated producer', {
      cause: error,
      context: { epoch: true },
    });
  }
}

export function fenced(cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'FENCED',
    'another instance has taken over this account, so this one stops: outside of a fleet run one instance per account',
    { cause },
  );
}

/** After this long the broker gives up a transaction that was left open. */
export const TRANSACTION_TIMEOUT_MS = 60_000;
/** Within this time it can't have: its clock need not go as ours does. */
const SURELY_IN_TIME_MS = TRANSACTION_TIMEOUT_MS / 2;
/** The id is not known any more, or has another producer: nobody says which. */
const OTHER_PRODUCER = 49;

/**
 * Brokers use the same words for a producer that another one of its id has replaced and for one whose transaction ran
 * out of time. Time tells: of a transaction that began just now it can only be the first.
 */
interface Fencing {
  /** A transaction begins; where `isInDoubt`, the one before may still be open at the broker. */
  readonly begin: (isInDoubt: boolean) => void;
  /** What ended a commit, as `FENCED` where that is certain. */
  readonly judge: (cause: unknown, known: unknown) => unknown;
}

export function fencing(): Fencing {
  let began = now();
  return {
    begin: (isInDoubt) => {
      if (!isInDoubt) began = now();
    },
    judge: (cause, known) => {
      const isOurs = known instanceof CellarstreamError && known.code === 'COMMIT_FAILED';
      if (!isOurs || !isEpochError(cause) || codeOf(cause) === OTHER_PRODUCER) return known;
      return since(began) < SURELY_IN_TIME_MS ? idTaken(cause) : known;
    },
  };
}

function idTaken(cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'FENCED',
    'another producer has opened this transactional id, so this one stops: use each id in one program only',
    { cause, context: { epoch: true } },
  );
}

interface Moment {
  readonly steady: number;
  readonly wall: number;
}

function now(): Moment {
  return { steady: performance.now(), wall: Date.now() };
}

/** By the clock that has gone further: one of them stands still while the machine sleeps. */
function since({ steady, wall }: Moment): number {
  return Math.max(performance.now() - steady, Date.now() - wall);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
