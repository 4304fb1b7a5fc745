import type { Brokers } from './brokers.ts';
import type { Address, Call } from './call.ts';
import { protocolError } from './protocol-errors.ts';
import { int8, string } from './protocol-writer.ts';
import { metadata } from '../producer/calls.ts';

/** Kinds of coordinator: the key type in FindCoordinator, and the internal topic that holds their state. */
const KINDS = {
  group: { number: 0, topic: '__consumer_offsets' },
  transaction: { number: 1, topic: '__transaction_state' },
} as const;
const COORDINATOR_NOT_AVAILABLE = 15;

interface Coordinator extends Address {
  readonly errorCode: number;
}

/**
 * Finds the broker that coordinates a group, or the transactions of a transactional id.
 *
 * @throws kafkajs' KafkaJSProtocolError with the broker's error code, and the errors of {@link Brokers.askAny}.
 */
export async function findCoordinator(
  brokers: Brokers,
  kind: keyof typeof KINDS,
  id: string,
): Promise<Address> {
  const { errorCode, ...found } = await brokers.askAny(coordinatorCall(kind, id));
  if (errorCode === COORDINATOR_NOT_AVAILABLE) {
    throw protocolError(errorCode, await missingText(brokers, kind));
  }
  if (errorCode !== 0) throw protocolError(errorCode, 'FindCoordinator');
  return found;
}

/** Text for an unavailable coordinator. Its internal topic cannot be created while there are fewer brokers than its replication factor. */
async function missingText(brokers: Brokers, kind: keyof typeof KINDS): Promise<string> {
  const { topic } = KINDS[kind];
  const what = `no broker coordinates ${kind}s`;
  const found = await brokers.askAny(metadata([topic])).catch(() => undefined); // the first answer says enough
  if (!found) return what;
  const { length } = found.brokers;
  const isThere = found.topics.some(({ errorCode }) => errorCode === 0);
  const there = `${length} broker${length === 1 ? ' is' : 's are'} there`;
  return isThere ? `${what}, ${there}` : `${what}, ${there}, and the topic ${topic} is not`;
}

function coordinatorCall(kind: keyof typeof KINDS, id: string): Call<Coordinator> {
  return {
    name: 'FindCoordinator',
    key: 10,
    version: 2,
    body: Buffer.concat([string(id), int8(KINDS[kind].number)]),
    read: (answer) => {
      const errorCode = answer.int16();
      answer.string(); // the error in words
      answer.int32(); // its id
      return { errorCode, host: answer.string() ?? '', port: answer.int32() };
    },
  };
}
