import type { Brokers } from './brokers.ts';
import type { Address, Call } from './call.ts';
import { protocolError } from './protocol-errors.ts';
import { int8, string } from './protocol-writer.ts';

/** What a broker may coordinate. */
const KINDS = { group: 0, transaction: 1 } as const;

interface Coordinator extends Address {
  readonly errorCode: number;
}

/**
 * Who coordinates a group, or the transactions of an id.
 *
 * @throws kafkajs' error with the broker's word, and as {@link Brokers.askAny} does.
 */
export async function findCoordinator(
  brokers: Brokers,
  kind: keyof typeof KINDS,
  id: string,
): Promise<Address> {
  const { errorCode, ...found } = await brokers.askAny(coordinatorCall(kind, id));
  if (errorCode !== 0) throw protocolError(errorCode, 'FindCoordinator');
  return found;
}

function coordinatorCall(kind: keyof typeof KINDS, id: string): Call<Coordinator> {
  return {
    name: 'FindCoordinator',
    key: 10,
    version: 2,
    body: Buffer.concat([string(id), int8(KINDS[kind])]),
    read: (answer) => {
      const errorCode = answer.int16();
      answer.string(); // the error in words
      answer.int32(); // its id
      return { errorCode, host: answer.string() ?? '', port: answer.int32() };
    },
  };
}
