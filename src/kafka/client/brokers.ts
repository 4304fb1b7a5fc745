// Sends requests to the brokers of a cluster: to any broker or to a coordinator, with retries for a limited time.

import { setMaxListeners } from 'node:events';
import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { createCall, nameOf, int8, string } from './protocol.ts';
import type { Address, Call } from './protocol.ts';
import { Connections } from './connections.ts';
import { kafkaError } from './kafka-error.ts';
import { Patience, retrying } from './patience.ts';
import { ERROR, protocolError } from './protocol-errors.ts';
import { metadata } from './topic-calls.ts';

/**
 * Access to a Kafka cluster: kafkajs' client with the cluster's settings and, optionally, connections to share. Without `connections`, each
 * {@link Brokers} opens and closes its connections itself.
 */
export interface ClusterAccess {
  readonly kafka: Kafka;
  readonly connections?: Connections | undefined;
}

/** Longest wait for a response if no other broker can be asked instead, in ms. If it is too small, a slow broker counts as unreachable. */
const RESPONSE_TIMEOUT_MS = 10_000;
/** Longest wait for a response if another broker can be asked instead, in ms. */
const ANY_BROKER_TIMEOUT_MS = 3_000;

/** Sends calls to the brokers of a cluster, and remembers which brokers respond. */
export class Brokers {
  readonly #connections: Connections;
  readonly #ownsConnections: boolean;
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();
  /**
   * Known broker addresses; empty until a broker has responded. The broker that last responded to {@link sendToAny} comes first, unless the
   * newest metadata lack its address.
   */
  #known: readonly Address[] = [];

  /** @param timeoutMs Longest wait for a response, in ms, if the call to `send` sets no other. */
  constructor({ kafka, connections }: ClusterAccess, timeoutMs = RESPONSE_TIMEOUT_MS) {
    this.#connections = connections ?? new Connections(kafka, 1);
    this.#ownsConnections = connections === undefined;
    this.#timeoutMs = timeoutMs;
    setMaxListeners(0, this.#closing.signal); // each call in flight adds a listener: Node would warn about more than ten
  }

  /** Whether at least one broker has responded. */
  get hasAnswered(): boolean {
    return this.#known.length > 0;
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Sends a call to the broker at `address`, and resolves with the response. `withinMs`: longest wait for the response, in ms.
   *
   * @throws `CallNotSent`, `CallUnanswered`; `KafkaJSProtocolError` if the broker does not support the call.
   */
  send<T>(address: Address, call: Call<T>, withinMs = this.#timeoutMs): Promise<T> {
    return this.#connections.send(address, call, { withinMs, signal: this.closed });
  }

  /**
   * Sends a call to one broker after another until one responds: first to the known brokers, then to the addresses in the settings. If no
   * broker responds, rejects with the error of the last one.
   *
   * @param first By default, the known broker that responded most recently comes first. With `others`, it comes last among the known
   * brokers, because its metadata may be outdated.
   */
  async sendToAny<T>(call: Call<T>, first?: 'others'): Promise<T> {
    const known = this.#known;
    const inOrder = first === 'others' ? [...known.slice(1), ...known.slice(0, 1)] : known;
    const seeds = await this.#connections.seeds();
    const all = new Map([...inOrder, ...seeds].map((each) => [nameOf(each), each]));
    let last: unknown;
    for (const address of all.values()) {
      try {
        const answer = await this.send(address, call, ANY_BROKER_TIMEOUT_MS);
        const others = this.#known.filter((each) => nameOf(each) !== nameOf(address));
        this.#known = [address, ...others];
        return answer;
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }

  /** Replaces the known addresses of the cluster's brokers by those in its metadata. */
  updateAddresses(addresses: readonly Address[]): void {
    this.#connections.setAdvertised(addresses);
    const names = new Set(addresses.map(nameOf));
    const first = this.#known.filter((each) => names.has(nameOf(each))).slice(0, 1); // it responded last
    this.#known = [...first, ...addresses];
  }

  /** Closes this client: calls in flight are rejected at once, although brokers may still execute them. Shared connections stay open. */
  close(): void {
    const error = new kafkajs.KafkaJSConnectionError(
      'this process has closed its client of the Kafka brokers',
    );
    this.#closing.abort(error); // first, so that calls in flight are rejected with this error
    if (this.#ownsConnections) this.#connections.close();
  }
}

/**
 * Calls `ask` with a client of the brokers until it succeeds; transient errors are retried. `ask` must be safe to repeat.
 *
 * @param limit Time limit for the retries, in ms. `unreachableMs` (default: `ms`) applies while no broker has responded.
 * @throws CellarstreamError, converted from kafkajs' newest error by {@link kafkaError}.
 */
export async function withBrokers<T>(
  cluster: ClusterAccess,
  limit: { readonly ms: number; readonly unreachableMs?: number },
  ask: (brokers: Brokers) => Promise<T>,
): Promise<T> {
  const brokers = new Brokers(cluster);
  const patience = new Patience(limit.ms, brokers.closed);
  const unreachable = new Patience(limit.unreachableMs ?? limit.ms, brokers.closed);
  try {
    const wait = (error: unknown) => (brokers.hasAnswered ? patience : unreachable).wait(error);
    return await retrying({ wait }, () => ask(brokers));
  } catch (error) {
    throw kafkaError(error);
  } finally {
    brokers.close();
  }
}

/**
 * Kinds of coordinator. `number`: key type in FindCoordinator requests; `topic`: internal topic in which Kafka stores the coordinator's
 * state.
 */
const KINDS = {
  group: { number: 0, topic: '__consumer_offsets' },
  transaction: { number: 1, topic: '__transaction_state' },
} as const;

/**
 * Finds the broker that coordinates a Kafka group, or the transactions of a transactional id.
 *
 * @throws kafkajs' error for an error code in the response, and the errors of {@link Brokers.sendToAny}.
 */
export async function findCoordinator(
  brokers: Brokers,
  kind: keyof typeof KINDS,
  id: string,
): Promise<Address> {
  const call = createCall('FindCoordinator', [string(id), int8(KINDS[kind].number)], (answer) => {
    const code = answer.int16();
    answer.string(); // error message
    answer.int32(); // broker id
    return { errorCode: code, host: answer.string() ?? '', port: answer.int32() };
  });
  const { errorCode, ...found } = await brokers.sendToAny(call);
  if (errorCode === ERROR.COORDINATOR_NOT_AVAILABLE) {
    throw protocolError(errorCode, await missingText(brokers, kind));
  }
  if (errorCode !== 0) throw protocolError(errorCode, 'FindCoordinator');
  return found;
}

/**
 * Returns the error text for a missing coordinator, with the number of available brokers. If Kafka's internal topic for coordinators does
 * not exist, the text names it.
 */
async function missingText(brokers: Brokers, kind: keyof typeof KINDS): Promise<string> {
  const { topic } = KINDS[kind];
  const what = `no broker coordinates ${kind}s`;
  const found = await brokers.sendToAny(metadata([topic])).catch(() => undefined); // the message is useful without it
  if (!found) return what;
  const { length } = found.brokers;
  // A cluster with fewer brokers than that topic's replication factor can't create it.
  const isThere = found.topics.some(({ errorCode }) => errorCode === 0);
  const there = `${length} broker${length === 1 ? ' is' : 's are'} available`;
  return isThere ? `${what}, ${there}` : `${what}, ${there}, and the topic ${topic} does not exist`;
}
