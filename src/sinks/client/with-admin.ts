import type { Admin, Kafka } from 'kafkajs';
import { defer, firstValueFrom, retry, throwError, timer } from 'rxjs';
import { hasType, kafkaError } from './kafka-error.ts';

/** Pause between two attempts, and the time after which no further attempt begins, in ms. */
const RETRY_AFTER_MS = 100;
const RETRY_FOR_MS = 10_000;
/**
 * Error types for a topic that was created a moment ago and for a partition whose leader has moved. kafkajs does not retry most
 * admin requests that get them; those that it retries fail with an error whose cause has the type.
 */
const NOT_YET = ['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE', 'NOT_LEADER_FOR_PARTITION'];

/**
 * Runs `work` with an admin connection that is closed afterwards. While brokers do not yet know a topic or the leader of a partition, for
 * up to 10 s, `work` is run again with a new connection, which asks for the leaders anew: it must be safe to do twice.
 *
 * @throws CellarstreamError as {@link kafkaError} makes it of what kafkajs throws.
 */
export function withAdmin<T>(
  kafka: Pick<Kafka, 'admin'>,
  work: (admin: Admin) => Promise<T>,
): Promise<T> {
  const until = performance.now() + RETRY_FOR_MS;
  return firstValueFrom(
    defer(() => withConnection(kafka.admin(), work)).pipe(
      retry({
        delay: (error: unknown) =>
          hasType(error, NOT_YET) && performance.now() < until
            ? timer(RETRY_AFTER_MS)
            : throwError(() => error),
      }),
    ),
  ).catch((error: unknown) => {
    throw kafkaError(error);
  });
}

async function withConnection<T>(admin: Admin, work: (admin: Admin) => Promise<T>): Promise<T> {
  try {
    await admin.connect();
    return await work(admin);
  } finally {
    await admin.disconnect().catch(() => undefined); // what came before it says more
  }
}
