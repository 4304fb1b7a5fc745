// Asks the brokers of a cluster: any of them, the coordinator of something, again and again for a time.

import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { nameOf, kafkasOf, int8, string } from './protocol.ts';
import type { Address, Call } from './protocol.ts';
import { connectionsOf } from './connections.ts';
import type { Connections } from './connections.ts';
import { kafkaError } from './kafka-error.ts';
import { isRetryable } from '../../core/errors.ts';
import { ERROR, protocolError } from './protocol-errors.ts';
import { metadata } from './topic-calls.ts';

/** The brokers of a cluster, as one who asks them sees them. */
export interface Brokers {
  /** @throws NotSent or NoAnswer, with kafkajs' error as their cause. */
  ask<T>(address: Address, call: Call<T>, withinMs?: number): Promise<T>;
  /**
   * Asks whoever answers: those that are known, then those that the settings name. First whoever has answered last; or
   * `others` before: what that one knows may be old. Throws as the last of them.
   */
  askAny<T>(call: Call<T>, first?: 'others'): Promise<T>;
  /** Whether any broker has answered yet. */
  readonly hasAnswered: boolean;
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
  return {
    ...brokers,
    get hasAnswered() {
      return brokers.hasAnswered;
    },
    close: () => {
      brokers.close(); // first: what is under way has its reason
      connections.close();
    },
  };
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
    get hasAnswered() {
      return known.length > 0;
    },
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

/** A cluster, and the connections to it that others use as well. Default one's own, closed afterwards. */
export interface Asked {
  readonly kafka: Kafka;
  readonly connections?: Connections;
}

/**
 * Asks brokers for something, again and again for so long: it must be safe to do twice.
 *
 * @param awayMs How long it is tried while no broker answers at all, in ms. Default `withinMs`.
 * @throws CellarstreamError as {@link kafkaError} makes it of what kafkajs throws.
 */
export async function askBrokers<T>(
  { kafka, connections }: Asked,
  withinMs: number,
  ask: (brokers: Brokers) => Promise<T>,
  awayMs = withinMs,
): Promise<T> {
  const brokers = connections ? brokersOver(connections) : brokersOf(kafka);
  try {
    const [limit, limitAway] = [withinMs, awayMs].map((ms) => patience(ms, brokers.closed));
    const wait = (error: unknown) => (brokers.hasAnswered ? limit! : limitAway!).wait(error);
    return await persistently({ wait }, () => ask(brokers));
  } catch (error) {
    throw kafkaError(kafkasOf(error));
  } finally {
    brokers.close();
  }
}

/** How long something may be tried, and the pauses in between. */
export interface Patience {
  /**
   * Waits before the next try. Pauses double, from 20 ms to half a second.
   *
   * @throws `error`, why the last try came to nothing, when the time is over, nobody waits for it any more,
   * or no later try will do.
   */
  wait(error: unknown): Promise<void>;
  /** The same after 10 ms, for what is a matter of moments; once a second of it has gone by, as `wait`. */
  soon(error: unknown): Promise<void>;
}

/** Tries it until it succeeds. @throws as {@link Patience.wait}. */
export async function persistently<T>(
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

const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;
const SOON_MS = 10;
const MAX_SOON = 100;
/** Answers that say that the cluster lacks brokers. */
const LACKING: ReadonlySet<unknown> = new Set(['COORDINATOR_NOT_AVAILABLE', 'NOT_ENOUGH_REPLICAS']);
/**
 * How long a row of such answers is waited for, in ms. Too small: the election of a new leader would end transactions. Too large:
 * the log says late why nothing is published. The work is begun again afterwards, as after any error that can pass.
 */
const LACKING_MS = 5_000;

/** @param closed Whoever wants it done has gone. */
export function patience(ms: number, closed: AbortSignal): Patience {
  const until = performance.now() + ms;
  let next = FIRST_PAUSE_MS;
  let lackingSince: number | undefined;
  const waitFor = async (pauseMs: number, error: unknown): Promise<void> => {
    const known = kafkaError(kafkasOf(error));
    const now = performance.now();
    lackingSince = isLacking(error) ? (lackingSince ?? now) : undefined;
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
    soon: (error) => ((soons += 1) > MAX_SOON ? limit.wait(error) : waitFor(SOON_MS, error)),
  };
  return limit;
}

function isLacking(error: unknown): boolean {
  return error instanceof Error && 'type' in error && LACKING.has(error.type);
}

/** Kinds of coordinator: the key type in FindCoordinator, and the internal topic that holds their state. */
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
 * @throws kafkajs' KafkaJSProtocolError with the broker's error code, and the errors of {@link Brokers.askAny}.
 */
export async function findCoordinator(
  brokers: Brokers,
  kind: keyof typeof KINDS,
  id: string,
): Promise<Address> {
  const { errorCode, ...found } = await brokers.askAny(coordinatorCall(kind, id));
  if (errorCode === ERROR.COORDINATOR_NOT_AVAILABLE) {
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
