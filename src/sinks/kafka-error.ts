import { CellarstreamError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';

/** What the broker calls the end of a producer whose place was taken, or whose transaction ran out of time. */
const EPOCH_ERRORS = new Set([
  'INVALID_PRODUCER_EPOCH',
  'PRODUCER_FENCED',
  'INVALID_PRODUCER_ID_MAPPING',
]);

/** kafkajs' errors as ours. A code says what the caller was doing; default: nobody answered. */
export function kafkaError(
  error: unknown,
  code: ErrorCode = 'KAFKA_UNREACHABLE',
): CellarstreamError {
  if (error instanceof CellarstreamError) return error;
  const what = code === 'COMMIT_FAILED' ? 'a Kafka transaction failed' : 'no answer from Kafka';
  return new CellarstreamError(code, what, {
    cause: error,
    context: { epoch: isEpochError(error) },
  });
}

/** Whether the broker took the producer for an outdated one. */
export function isEpochError(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('type' in at && typeof at.type === 'string' && EPOCH_ERRORS.has(at.type)) return true;
    if (at instanceof CellarstreamError && at.context.epoch === true) return true;
  }
  return false;
}
