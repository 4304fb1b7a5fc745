// The coordinator of a transactional id: asked until it has done what it is asked for, also where a topic ends for sure.

import type { Brokers, Patience } from '../client/brokers.ts';
import type { Address, Call } from '../client/protocol.ts';
import { findCoordinator, persistently } from '../client/brokers.ts';
import { meaningOf, protocolError } from '../client/protocol-errors.ts';
import { NoAnswer, NotSent } from '../client/protocol.ts';
import { metadata } from '../client/topic-calls.ts';
import { boundsIn } from '../client/topic-facts.ts';
import type { Bounds, Isolation } from '../sink.ts';

/** The broker that keeps a transactional id's transactions, whichever that is just now. */
interface TransactionCoordinator {
  /**
   * Asks until it has done so.
   *
   * @throws what `patience` does, kafkajs' error with the broker's word, and {@link NoAnswer} at once where the
   * call may not be repeated.
   */
  ask<T>(call: Call<T>, options: AskOptions<T>): Promise<Answered<T>>;
}

interface AskOptions<T> {
  readonly patience: Patience;
  /** The error code in an answer. */
  readonly codeOf: (answer: T) => number;
  /** Whether the same may be said twice. */
  readonly isRepeatable: boolean;
  /** What the transaction is about is not known to the broker yet, or not any more. */
  readonly onUnknown?: () => Promise<void>;
}

export interface Answered<T> {
  readonly answer: T;
  /** An answer to the same call stayed out before: a late copy of it may still arrive. */
  readonly stayedOut: boolean;
}

export function transactionCoordinator(
  brokers: Brokers,
  transactionalId: string,
): TransactionCoordinator {
  let address: Address | undefined;

  return {
    ask: async (call, { patience, codeOf, isRepeatable, onUnknown }) => {
      let stayedOut = false;
      for (;;) {
        try {
          address ??= await findCoordinator(brokers, 'transaction', transactionalId);
        } catch (error) {
          await patience.wait(error);
          continue;
        }
        let code: number;
        try {
          const answer = await brokers.ask(address, call);
          code = codeOf(answer);
          if (meaningOf(code) === 'done') return { answer, stayedOut };
        } catch (error) {
          if (!(error instanceof NoAnswer || error instanceof NotSent)) throw error; // it does not speak it
          address = undefined;
          if (error instanceof NoAnswer) {
            stayedOut = true;
            if (!isRepeatable) throw error;
          }
          await patience.wait(error);
          continue;
        }
        const error = protocolError(code, call.name);
        const meaning = meaningOf(code);
        if (meaning === 'soon') {
          await patience.soon(error);
          continue;
        }
        if (meaning === 'coordinator') address = undefined;
        else if (meaning === 'leader')
          await onUnknown?.().catch((cause: unknown) => patience.wait(cause));
        else if (meaning !== 'again') throw error;
        await patience.wait(error);
      }
    },
  };
}

/**
 * Where the partitions of a topic begin and end, with all that was committed before this producer was opened.
 *
 * A broker that stood still, or is cut off from the others, goes on as the leader that it was, and knows of nothing that was
 * committed since. So who leads is asked of the coordinator: it has ended the transaction before, with the word of the leaders of
 * all its partitions. And each leader is asked as that of the epoch that the coordinator knows: an older one refuses.
 *
 * @throws what `patience` does, and kafkajs' error with a broker's word that no later try can change.
 */
export function fencedBounds(
  coordinator: TransactionCoordinator,
  brokers: Brokers,
  patience: Patience,
  of: { readonly topic: string; readonly isolation: Isolation },
): Promise<ReadonlyMap<number, Bounds>> {
  return persistently(patience, async () => {
    const { answer } = await coordinator.ask(metadata([of.topic]), {
      patience,
      codeOf: ({ topics }) => topics[0]?.errorCode ?? 0,
      isRepeatable: true,
    });
    return boundsIn(brokers, answer, of.isolation);
  });
}
