import { CellarstreamError } from '../core/errors.ts';
import { isEpochError } from './client/kafka-error.ts';

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
