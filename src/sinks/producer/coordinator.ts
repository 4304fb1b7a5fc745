// Calls to the coordinator of a transactional id, with retries; and the bounds of topics that no outdated leader can falsify.

import type { Brokers, Patience } from '../../kafka/client/brokers.ts';
import type { Address, Call } from '../../kafka/client/protocol.ts';
import { findCoordinator, retryWithin } from '../../kafka/client/brokers.ts';
import { errorAction, protocolError } from '../../kafka/client/protocol-errors.ts';
import { CallUnanswered, CallNotSent } from '../../kafka/client/protocol.ts';
import { metadata } from '../../kafka/client/topic-calls.ts';
import { boundsIn } from '../../kafka/client/topic-facts.ts';
import type { Bounds, Isolation } from '../../kafka/log.ts';

/** The broker that coordinates the transactions of a transactional id; looked up again when it moves. */
interface TransactionCoordinator {
  /**
   * Sends a call to the coordinator, and repeats it until it succeeds.
   *
   * @throws the errors of `patience`, kafkajs' error for an error code that is not retried, and {@link CallUnanswered} at once if the call
   * is not repeatable.
   */
  send<T>(call: Call<T>, options: CoordinatorCallOptions<T>): Promise<CoordinatorResult<T>>;
}

interface CoordinatorCallOptions<T> {
  readonly patience: Patience;
  /** Returns the error code in the response to the call. */
  readonly codeOf: (answer: T) => number;
  /** Whether the broker may receive the call twice. */
  readonly isRepeatable: boolean;
  /** Called when the coordinator does not know a topic of the transaction, as it is new or was deleted. */
  readonly onUnknownTopic?: () => Promise<void>;
}

export interface CoordinatorResult<T> {
  readonly response: T;
  /** Whether an earlier attempt got no response: a late copy of the call may still reach the broker. */
  readonly lateCopyPossible: boolean;
}

export function transactionCoordinator(
  brokers: Brokers,
  transactionalId: string,
): TransactionCoordinator {
  let address: Address | undefined;

  return {
    send: async (call, { patience, codeOf, isRepeatable, onUnknownTopic }) => {
      let lateCopyPossible = false;
      for (;;) {
        try {
          address ??= await findCoordinator(brokers, 'transaction', transactionalId);
        } catch (error) {
          await patience.wait(error);
          continue;
        }
        let code: number;
        try {
          const answer = await brokers.send(address, call);
          code = codeOf(answer);
          if (errorAction(code) === 'done') return { response: answer, lateCopyPossible };
        } catch (error) {
          if (!(error instanceof CallUnanswered || error instanceof CallNotSent)) throw error; // the broker does not support the call
          address = undefined;
          if (error instanceof CallUnanswered) {
            lateCopyPossible = true;
            if (!isRepeatable) throw error;
          }
          await patience.wait(error);
          continue;
        }
        const error = protocolError(code, call.name);
        const meaning = errorAction(code);
        if (meaning === 'soon') {
          await patience.waitBriefly(error);
          continue;
        }
        if (meaning === 'coordinator') address = undefined;
        else if (meaning === 'leader')
          await onUnknownTopic?.().catch((cause: unknown) => patience.wait(cause));
        else if (meaning !== 'again') throw error;
        await patience.wait(error);
      }
    },
  };
}

/**
 * Returns the first and the end offset of a topic's partitions, including everything that was committed before this producer was opened.
 *
 * A broker that was suspended, or is cut off from the others, continues to act as leader and does not know of later commits. So the leaders
 * are requested from the coordinator, which has ended the previous transaction together with the leaders of all its partitions. Each leader
 * is then asked with the leader epoch that the coordinator knows: a former leader refuses it.
 *
 * @throws the errors of `patience`, and kafkajs' error for an error code that no retry can resolve.
 */
export function fencedBounds(
  coordinator: TransactionCoordinator,
  brokers: Brokers,
  patience: Patience,
  of: { readonly topic: string; readonly isolation: Isolation },
): Promise<ReadonlyMap<number, Bounds>> {
  return retryWithin(patience, async () => {
    const { response } = await coordinator.send(metadata([of.topic]), {
      patience,
      codeOf: ({ topics }) => topics[0]?.errorCode ?? 0,
      isRepeatable: true,
    });
    return boundsIn(brokers, response, of.isolation);
  });
}
