import type { Admin, Kafka } from 'kafkajs';
import { kafkaError } from './kafka-error.ts';

/**
 * Does something with an admin connection that is closed afterwards.
 *
 * @throws CellarstreamError as {@link kafkaError} makes it of what kafkajs throws.
 */
export async function withAdmin<T>(kafka: Kafka, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafka.admin();
  try {
    await admin.connect();
    return await work(admin);
  } catch (error) {
    throw kafkaError(error);
  } finally {
    await admin.disconnect().catch(() => undefined); // what came before it says more
  }
}
