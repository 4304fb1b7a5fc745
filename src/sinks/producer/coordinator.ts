// Calls to the coordinator of a transactional id, with retries; and the bounds of topics that no outdated leader can falsify.

import type { Brokers } from '../../kafka/client/brokers.ts';
import type { Patience } from '../../kafka/client/patience.ts';
import { retrying } from '../../kafka/client/patience.ts';
import type { Address, Call } from '../../kafka/client/protocol.ts';
import { findCoordinator } from '../../kafka/client/brokers.ts';
import { errorAction, protocolError } from '../../kafka/client/protocol-errors.ts';
import { CallUnanswered, CallNotSent } from '../../kafka/client/protocol.ts';
import { metadata } from '../../kafka/client/topic-calls.ts';
import { boundsIn } from '../../kafka/client/topic-facts.ts';
import type { Isolation, TopicBounds } from '../../kafka/log.ts';

interface CoordinatorCallOptions<T> {
  readonly patience: Patience;
  readonly codeOf: (answer: T) => number;
  /** Whether the call may be sent again after an attempt without a response. The broker may then receive it twice. */
  readonly isRepeatable: boolean;
  /** Called when the coordinator does not know a topic of the transaction, which may be new or deleted. */
  readonly onUnknownTopic?: () => Promise<void>;
}

export interface CoordinatorResult<T> {
  readonly response: T;
  /** Whether an earlier attempt got no response. If so, a late copy of the call may still reach the broker. */
  readonly lateCopyPossible: boolean;
}

/**
 * Client of the broker that coordinates the transactions of a transactional id. Looks up the coordinator, and looks it up again when it has
 * moved.
 */
export class TransactionCoordinator {
  readonly #brokers: Brokers;
  readonly #transactionalId: string;
  #address: Address | undefined;

  constructor(brokers: Brokers, transactionalId: string) {
    this.#brokers = brokers;
    this.#transactionalId = transactionalId;
  }

  /**
   * Sends a call to the coordinator, and repeats the call until it succeeds.
   *
   * @throws one of these errors:
   * - if `patience` allows no further attempt: the error of the last attempt;
   * - for an error code that is not retried, or a call that the broker does not support: kafkajs' error;
   * - if an attempt gets no response and the call is not repeatable: {@link CallUnanswered}.
   */
  async send<T>(call: Call<T>, options: CoordinatorCallOptions<T>): Promise<CoordinatorResult<T>> {
    const { patience, codeOf, isRepeatable, onUnknownTopic } = options;
    let lateCopyPossible = false;
    for (;;) {
      let code: number;
      const address = await this.#find(patience);
      try {
        const response = await this.#brokers.send(address, call);
        code = codeOf(response);
        if (errorAction(code) === 'done') return { response, lateCopyPossible };
      } catch (error) {
        if (!(error instanceof CallUnanswered || error instanceof CallNotSent)) throw error; // the broker does not support the call
        this.#address = undefined;
        if (error instanceof CallUnanswered) {
          lateCopyPossible = true;
          if (!isRepeatable) throw error;
        }
        await patience.wait(error);
        continue;
      }
      const error = protocolError(code, call.name);
      switch (errorAction(code)) {
        case 'soon':
          await patience.waitBriefly(error);
          continue;
        case 'coordinator':
          this.#address = undefined;
          break;
        case 'leader':
          await onUnknownTopic?.().catch((cause: unknown) => patience.wait(cause));
          break;
        case 'again':
          break;
        default:
          throw error;
      }
      await patience.wait(error);
    }
  }

  /**
   * Returns the first and the end offset of each partition of a topic. The responding partition leaders know every transaction that this
   * transactional id committed before this producer was opened. With the isolation `committed`, the end offset is before the first open
   * transaction of any producer.
   *
   * The transaction coordinator is asked who the leaders are, because it has written the end of the previous transaction to these leaders.
   * The requests to the leaders contain the leader epoch, so a former leader refuses them (KIP-320).
   *
   * @throws the errors of `patience`, and kafkajs' error for an error code that no retry can resolve.
   */
  bounds(topic: string, isolation: Isolation, patience: Patience): Promise<TopicBounds> {
    return retrying(patience, async () => {
      const { response } = await this.send(metadata([topic]), {
        patience,
        codeOf: ({ topics }) => topics[0]?.errorCode ?? 0,
        isRepeatable: true,
      });
      return boundsIn(this.#brokers, response, isolation);
    });
  }

  async #find(patience: Patience): Promise<Address> {
    this.#address ??= await retrying(patience, () =>
      findCoordinator(this.#brokers, 'transaction', this.#transactionalId),
    );
    return this.#address;
  }
}
