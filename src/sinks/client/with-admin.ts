import kafkajs from 'kafkajs';
import type { Admin, Kafka } from 'kafkajs';
import { defer, firstValueFrom, retry, throwError, timer } from 'rxjs';
import { kafkaError } from './kafka-error.ts';

/** How often brokers are asked about partitions that they don't know yet, ms; and how many times. */
const ASK_EVERY_MS = 100;
const MAX_ASKED = 100;
/**
 * What brokers say of a topic that was made just now, and of a partition whose leader has moved; kafkajs takes it for
 * the last word in most of what an admin asks.
 */
const NOT_YET = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
]);

/**
 * Does something with an admin connection that is closed afterwards. Where the brokers don't agree yet on who leads a
 * partition it is begun again, with a new connection that asks for the leaders anew: it must be safe to do twice.
 *
 * @throws CellarstreamError as {@link kafkaError} makes it of what kafkajs throws.
 */
export function withAdmin<T>(
  kafka: Pick<Kafka, 'admin'>,
  work: (admin: Admin) => Promise<T>,
): Promise<T> {
  return firstValueFrom(
    defer(() => withConnection(kafka.admin(), work)).pipe(
      retry({
        count: MAX_ASKED,
        delay: (error: unknown) =>
          isNotYet(error) ? timer(ASK_EVERY_MS) : throwError(() => error),
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

function isNotYet(error: unknown): boolean {
  return error instanceof kafkajs.KafkaJSProtocolError && NOT_YET.has(error.type);
}
