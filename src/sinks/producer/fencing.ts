// Determines whether a commit failed because another producer of its transactional id was opened.

import { CellarstreamError } from '../../core/errors.ts';
import { hasErrorType, isEpochError } from '../../kafka/client/kafka-error.ts';

/** How long a process waits after an epoch error before it reads whether another process has claimed its task or account, in ms. */
export const CLAIM_GRACE_MS = 3_000;

/**
 * Runs a commit. If it fails with an epoch error, throws `COMMIT_FAILED` with the context `epoch: true`. Such an error does not prove that
 * another process has claimed the task or account: the transaction may have timed out. The caller reads the topics to find out.
 */
export async function asUnknownOutcome<T>(commit: () => Promise<T>): Promise<T> {
  try {
    return await commit();
  } catch (error) {
    if (!isEpochError(error)) throw error;
    // The transaction timed out, or a newer producer was opened: perhaps by a process that ended before it committed a claim, or by a late
    // copy of this process's own request.
    throw new CellarstreamError(
      'COMMIT_FAILED',
      'Kafka refused a commit, because its transaction timed out or a newer producer of its transactional id was opened: the service reads from Kafka what was committed, and goes on unless another instance has claimed the account',
      { cause: error, context: { epoch: true } },
    );
  }
}

export function fencedError(cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'FENCED',
    'another instance has claimed this account and publishes it from now on, so this instance stops serving the account: outside of a fleet, run only one instance for each account',
    { cause },
  );
}

/** Time after which the broker aborts an open transaction, in ms. */
export const TRANSACTION_TIMEOUT_MS = 60_000;
/**
 * Age up to which a transaction can't have timed out at the broker, in ms. It is half of the timeout, because the broker's clock may run
 * faster.
 */
const CERTAINLY_IN_TIME_MS = TRANSACTION_TIMEOUT_MS / 2;

/**
 * Distinguishes two causes of an epoch error: another producer of the transactional id was opened, or the transaction timed out. Brokers
 * use the same error codes for both causes, but a transaction that has just begun can't have timed out.
 */
export class Fencing {
  #began = now();

  /**
   * Records that a transaction begins, so that its age is known when its commit fails.
   *
   * @param isInDoubt Whether a late request of the previous transaction may have begun another one at the broker. If so, the age is
   * counted from the beginning of the previous transaction.
   */
  begin(isInDoubt: boolean): void {
    if (!isInDoubt) this.#began = now();
  }

  /**
   * Returns the error to throw for a failed commit: `FENCED` if another producer has certainly opened the transactional id, otherwise
   * `known`.
   *
   * @param cause The error of kafkajs.
   * @param known The error to which `cause` was converted.
   */
  classify(cause: unknown, known: unknown): unknown {
    const isOurs = known instanceof CellarstreamError && known.code === 'COMMIT_FAILED';
    if (!isOurs || !isEpochError(cause)) return known;
    if (hasErrorType(cause, 'INVALID_PRODUCER_ID_MAPPING')) return known; // possibly the transactional id has expired
    return elapsedSince(this.#began) < CERTAINLY_IN_TIME_MS ? idTaken(cause) : known;
  }
}

function idTaken(cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'FENCED',
    'another producer has opened this transactional id, so this one stops: use each id in one program only',
    { cause, context: { epoch: true } },
  );
}

function now() {
  return { steady: performance.now(), wall: Date.now() };
}

/** Returns the elapsed time in ms, by the clock that has advanced more. The monotonic clock alone may stop while the machine sleeps. */
function elapsedSince({ steady, wall }: ReturnType<typeof now>): number {
  return Math.max(performance.now() - steady, Date.now() - wall);
}
