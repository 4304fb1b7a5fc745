import { setMaxListeners } from 'node:events';
import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { nameOf } from './call.ts';
import type { Address, Call } from './call.ts';
import { connectionsOf } from './connections.ts';
import type { Connections } from './connections.ts';

/** The brokers of a cluster, as one who asks them sees them. */
export interface Brokers {
  /** @throws NotSent or NoAnswer, with kafkajs' error as their cause. */
  ask<T>(address: Address, call: Call<T>, withinMs?: number): Promise<T>;
  /**
   * Asks whoever answers: those that are known, then those that the settings name. First whoever has answered last; or
   * `others` before: what that one knows may be old. Throws as the last of them.
   */
  askAny<T>(call: Call<T>, first?: 'others'): Promise<T>;
  /** Who is in the cluster, as its metadata have it. */
  know(addresses: readonly Address[]): void;
  /** Aborted by {@link close}. */
  readonly closed: AbortSignal;
  /** At once: what is under way goes without an answer, but may be carried out. Connections of others stay. */
  close(): void;
}

/** Longest wait for an answer that only the addressed broker can give, in ms. */
const ANSWER_WITHIN_MS = 10_000;
/** The same where another broker can be asked as well. */
const ANY_ANSWER_WITHIN_MS = 3_000;

/**
 * Over a connection of its own to each broker. Connects to nothing yet.
 *
 * @param answerWithinMs Longest wait for an answer to {@link Brokers.ask}, in ms, where the call names none.
 */
export function brokersOf(kafka: Kafka, answerWithinMs = ANSWER_WITHIN_MS): Brokers {
  const connections = connectionsOf(kafka, { perBroker: 1 });
  const brokers = brokersOver(connections, answerWithinMs);
  const close = () => {
    brokers.close();
    connections.close();
  };
  return { ...brokers, close };
}

/** Over connections that others use as well. `answerWithinMs` as in {@link brokersOf}. */
export function brokersOver(connections: Connections, answerWithinMs = ANSWER_WITHIN_MS): Brokers {
  const closing = new AbortController();
  const { signal } = closing;
  setMaxListeners(0, signal); // one for each call that is under way: some to each broker
  let known: readonly Address[] = [];

  const askAny = async <T>(call: Call<T>, first?: 'others'): Promise<T> => {
    const inOrder = first === 'others' ? [...known.slice(1), ...known.slice(0, 1)] : known;
    const seeds = await connections.seeds();
    const all = new Map([...inOrder, ...seeds].map((each) => [nameOf(each), each]));
    let last: unknown;
    for (const address of all.values()) {
      try {
        const withinMs = ANY_ANSWER_WITHIN_MS;
        const answer = await connections.ask(address, call, { withinMs, signal });
        known = [address, ...known.filter((each) => nameOf(each) !== nameOf(address))];
        return answer;
      } catch (error) {
        last = error;
      }
    }
    throw last;
  };

  return {
    ask: (address, call, withinMs = answerWithinMs) =>
      connections.ask(address, call, { withinMs, signal }),
    askAny,
    know: (addresses) => {
      connections.advertised(addresses);
      const names = new Set(addresses.map(nameOf));
      const first = known.filter((each) => names.has(nameOf(each))).slice(0, 1); // it answers
      known = [...first, ...addresses];
    },
    closed: signal,
    close: () => closing.abort(new kafkajs.KafkaJSConnectionError('the producer is closed')),
  };
}
