import type { Brokers, Patience } from '../client/brokers.ts';
import type { Address, Call } from '../client/protocol.ts';
import { findCoordinator } from '../client/brokers.ts';
import { meaningOf, protocolError } from '../client/protocol-errors.ts';
import { NoAnswer, NotSent } from '../client/protocol.ts';

/** The broker that keeps a transactional id's transactions, whichever that is just now. */
export interface TransactionCoordinator {
  /**
   * Asks until it has done so.
   *
   * @throws what `patience` does, kafkajs' error with the broker's word, and {@link NoAnswer} at once where the
   * call may not be repeated.
   */
  ask<T>(call: Call<T>, options: AskOptions<T>): Promise<Answered<T>>;
}

export interface AskOptions<T> {
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
