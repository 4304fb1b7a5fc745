import type { Kafka } from 'kafkajs';
import { brokersOf, brokersOver } from '../client/brokers.ts';
import type { Brokers } from '../client/brokers.ts';
import type { Connections } from '../client/connections.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { kafkasOf } from '../client/unanswered.ts';
import { patience, persistently } from './patience.ts';

/** A cluster, and the connections to it that others use as well. Default one's own, closed afterwards. */
export interface Asked {
  readonly kafka: Kafka;
  readonly connections?: Connections;
}

/**
 * Asks brokers for something, again and again for so long: it must be safe to do twice.
 *
 * @throws CellarstreamError as {@link kafkaError} makes it of what kafkajs throws.
 */
export async function askBrokers<T>(
  { kafka, connections }: Asked,
  withinMs: number,
  ask: (brokers: Brokers) => Promise<T>,
): Promise<T> {
  const brokers = connections ? brokersOver(connections) : brokersOf(kafka);
  try {
    return await persistently(patience(withinMs, brokers.closed), () => ask(brokers));
  } catch (error) {
    throw kafkaError(kafkasOf(error));
  } finally {
    brokers.close();
  }
}
