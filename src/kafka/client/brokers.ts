// Sends requests to the brokers of a cluster: to any broker or to a coordinator, with retries for a limited time.

import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { nameOf, kafkajsCauseOf, int8, string } from './protocol.ts';
import type { Address, Call } from './protocol.ts';
import { connectionsOf } from './connections.ts';
import type { Connections } from './connections.ts';
import { kafkaError } from './kafka-error.ts';
import { isRetryable } from '../../core/errors.ts';
import { ERROR, protocolError } from './protocol-errors.ts';
import { metadata } from './topic-calls.ts';

/** Sends calls to the brokers of a cluster, and remembers which of them respond. */
export interface Brokers {
  /** Sends a call to one broker and returns its response. @throws `CallNotSent` or `CallUnanswered`, with kafkajs' error as the cause. */
  send<T>(address: Address, call: Call<T>, withinMs?: number): Promise<T>;
  /**
   * Sends a call to one broker after the other until one responds: first to the known brokers, then to those in the settings. Of the known
   * brokers, the one that responded last is the first; with `others` it is the last of them, as its metadata may be outdated. Rejects with
   * the error of the last broker.
   */
  sendToAny<T>(call: Call<T>, first?: 'others'): Promise<T>;
  /** Whether any broker has responded yet. */
  readonly hasAnswered: boolean;
  /** Sets the addresses of the cluster's brokers, as its metadata list them. */
  updateAddresses(addresses: readonly Address[]): void;
  /** Signal that {@link close} aborts. */
  readonly closed: AbortSignal;
  /** Rejects calls in flight at once; brokers may still carry them out. Shared connections stay open. */
  close(): void;
}

/** Longest wait for a response that only the addressed broker can give, in ms. Too small: a slow broker counts as unreachable. */
const RESPONSE_TIMEOUT_MS = 10_000;
/** Longest wait for a response if another broker can be asked instead, in ms. */
const ANY_BROKER_TIMEOUT_MS = 3_000;

/**
 * Creates a {@link Brokers} with one connection of its own to each broker, opened when it is first needed.
 *
 * @param answerWithinMs Default of {@link Brokers.send} for the longest wait for a response, in ms.
 */
export function brokersOf(kafka: Kafka, answerWithinMs = RESPONSE_TIMEOUT_MS): Brokers {
  const connections = connectionsOf(kafka, { perBroker: 1 });
  const brokers = brokersOver(connections, answerWithinMs);
  return {
    ...brokers,
    get hasAnswered() {
      return brokers.hasAnswered;
    },
    close: () => {
      brokers.close(); // first, so that calls in flight are rejected with its reason
      connections.close();
    },
  };
}

/**
 * Creates a {@link Brokers} over shared connections. `answerWithinMs`: default of {@link Brokers.send} for the longest wait for a response.
 */
export function brokersOver(
  connections: Connections,
  answerWithinMs = RESPONSE_TIMEOUT_MS,
): Brokers {
  const closing = new AbortController();
  const { signal } = closing;
  setMaxListeners(0, signal); // each call in flight adds a listener: Node would warn about more than ten
  let known: readonly Address[] = [];

  const sendToAny = async <T>(call: Call<T>, first?: 'others'): Promise<T> => {
    const inOrder = first === 'others' ? [...known.slice(1), ...known.slice(0, 1)] : known;
    const seeds = await connections.seeds();
    const all = new Map([...inOrder, ...seeds].map((each) => [nameOf(each), each]));
    let last: unknown;
    for (const address of all.values()) {
      try {
        const withinMs = ANY_BROKER_TIMEOUT_MS;
        const answer = await connections.send(address, call, { withinMs, signal });
        known = [address, ...known.filter((each) => nameOf(each) !== nameOf(address))];
        return answer;
      } catch (error) {
        last = error;
      }
    }
    throw last;
  };

  return {
    send: (address, call, withinMs = answerWithinMs) =>
      connections.send(address, call, { withinMs, signal }),
    sendToAny,
    get hasAnswered() {
      return known.length > 0;
    },
    updateAddresses: (addresses) => {
      connections.setAdvertised(addresses);
      const names = new Set(addresses.map(nameOf));
      const first = known.filter((each) => names.has(nameOf(each))).slice(0, 1); // it responded last
      known = [...first, ...addresses];
    },
    closed: signal,
    close: () => closing.abort(new kafkajs.KafkaJSConnectionError('the producer is closed')),
  };
}

/**
 * The cluster that requests go to, and shared connections to it. Without `connections`, each use opens its own and closes them afterwards.
 */
export interface Asked {
  readonly kafka: Kafka;
  readonly connections?: Connections;
}

/**
 * Calls `ask` with the brokers of a cluster, again after an error, until it succeeds or `withinMs` have passed. `ask` must be safe to
 * repeat.
 *
 * @param awayMs How long to retry while no broker responds at all, in ms. Default `withinMs`.
 * @throws CellarstreamError, converted from kafkajs' errors by {@link kafkaError}.
 */
export async function withBrokers<T>(
  { kafka, connections }: Asked,
  withinMs: number,
  ask: (brokers: Brokers) => Promise<T>,
  awayMs = withinMs,
): Promise<T> {
  const brokers = connections ? brokersOver(connections) : brokersOf(kafka);
  try {
    const [limit, limitAway] = [withinMs, awayMs].map((ms) => patience(ms, brokers.closed));
    const wait = (error: unknown) => (brokers.hasAnswered ? limit! : limitAway!).wait(error);
    return await retryWithin({ wait }, () => ask(brokers));
  } catch (error) {
    throw kafkaError(kafkajsCauseOf(error));
  } finally {
    brokers.close();
  }
}

/** A retry policy: how long failed attempts may be repeated, and the pauses between them. */
export interface Patience {
  /**
   * Waits before the next attempt. Pauses double, from 20 ms to half a second.
   *
   * @throws `error`, the failure of the last attempt, if the time is over, the caller has closed, or no retry can succeed.
   */
  wait(error: unknown): Promise<void>;
  /**
   * Waits 10 ms before the next attempt, for failures that pass within moments. After a hundred such pauses it waits as long as
   * {@link Patience.wait}.
   */
  waitBriefly(error: unknown): Promise<void>;
}

/** Repeats `work` until it succeeds or the retry policy `limit` ends the attempts. @throws as {@link Patience.wait}. */
export async function retryWithin<T>(
  limit: Pick<Patience, 'wait'>,
  work: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      await limit.wait(error);
    }
  }
}

/** First pause of {@link Patience.wait}, in ms; each later pause is twice as long. */
const FIRST_PAUSE_MS = 20;
/** Longest pause of {@link Patience.wait}, in ms. */
const MAX_PAUSE_MS = 500;
/** Pause of {@link Patience.waitBriefly}, in ms. */
const SOON_MS = 10;
/** Number of short pauses, one second in all, after which {@link Patience.waitBriefly} waits as long as {@link Patience.wait}. */
const MAX_BRIEF_WAITS = 100;
/** Kafka's error types which mean that too few brokers are available. */
const LACKING_BROKERS: ReadonlySet<unknown> = new Set([
  'COORDINATOR_NOT_AVAILABLE',
  'NOT_ENOUGH_REPLICAS',
]);
/**
 * How long errors of {@link LACKING_BROKERS} (too few brokers) are retried if no other error comes between them, in ms. Too small: the
 * election of a new leader fails transactions. Too large: the log reports late why nothing is published. Afterwards the caller starts over,
 * as after any transient error.
 */
const LACKING_MS = 5_000;

/**
 * Creates a retry policy that ends the attempts after `ms`.
 *
 * @param closed Aborted when the caller has closed: then an attempt that fails is not repeated, and its error is thrown.
 */
export function patience(ms: number, closed: AbortSignal): Patience {
  const until = performance.now() + ms;
  let next = FIRST_PAUSE_MS;
  let lackingSince: number | undefined;
  const waitFor = async (pauseMs: number, error: unknown): Promise<void> => {
    const known = kafkaError(kafkajsCauseOf(error));
    const now = performance.now();
    lackingSince = isLackingBrokers(error) ? (lackingSince ?? now) : undefined;
    if (lackingSince !== undefined && now - lackingSince >= LACKING_MS) throw error;
    const left = until - now;
    if (closed.aborted || left <= 0 || !isRetryable(known)) throw error;
    await pause(Math.min(pauseMs, left), undefined, { signal: closed }).catch(() => {
      throw error;
    });
  };
  let soons = 0;
  const limit: Patience = {
    wait: async (error) => {
      const now = next;
      next = Math.min(2 * next, MAX_PAUSE_MS);
      await waitFor(now, error);
    },
    waitBriefly: (error) =>
      (soons += 1) > MAX_BRIEF_WAITS ? limit.wait(error) : waitFor(SOON_MS, error),
  };
  return limit;
}

function isLackingBrokers(error: unknown): boolean {
  return error instanceof Error && 'type' in error && LACKING_BROKERS.has(error.type);
}

/** Kinds of coordinator, each with its key type in FindCoordinator requests and the internal topic in which Kafka stores its state. */
const KINDS = {
  group: { number: 0, topic: '__consumer_offsets' },
  transaction: { number: 1, topic: '__transaction_state' },
} as const;

interface Coordinator extends Address {
  readonly errorCode: number;
}

/**
 * Finds the broker that coordinates a group, or the transactions of a transactional id.
 *
 * @throws kafkajs' KafkaJSProtocolError with the broker's error code, and the errors of {@link Brokers.sendToAny}.
 */
export async function findCoordinator(
  brokers: Brokers,
  kind: keyof typeof KINDS,
  id: string,
): Promise<Address> {
  const { errorCode, ...found } = await brokers.sendToAny(coordinatorCall(kind, id));
  if (errorCode === ERROR.COORDINATOR_NOT_AVAILABLE) {
    throw protocolError(errorCode, await missingText(brokers, kind));
  }
  if (errorCode !== 0) throw protocolError(errorCode, 'FindCoordinator');
  return found;
}

/**
 * Returns the message for an unavailable coordinator, with the number of brokers: the coordinator's internal topic can't be created while
 * there are fewer brokers than its replication factor.
 */
async function missingText(brokers: Brokers, kind: keyof typeof KINDS): Promise<string> {
  const { topic } = KINDS[kind];
  const what = `no broker coordinates ${kind}s`;
  const found = await brokers.sendToAny(metadata([topic])).catch(() => undefined); // the message is useful without it
  if (!found) return what;
  const { length } = found.brokers;
  const isThere = found.topics.some(({ errorCode }) => errorCode === 0);
  const there = `${length} broker${length === 1 ? ' is' : 's are'} available`;
  return isThere ? `${what}, ${there}` : `${what}, ${there}, and the topic ${topic} does not exist`;
}

function coordinatorCall(kind: keyof typeof KINDS, id: string): Call<Coordinator> {
  return {
    name: 'FindCoordinator',
    key: 10,
    version: 2,
    body: Buffer.concat([string(id), int8(KINDS[kind].number)]),
    read: (answer) => {
      const errorCode = answer.int16();
      answer.string(); // error message
      answer.int32(); // broker id
      return { errorCode, host: answer.string() ?? '', port: answer.int32() };
    },
  };
}
