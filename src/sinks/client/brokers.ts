import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { clusterOf } from './kafkajs-inner.ts';
import type { Broker, Connection, Exchange } from './kafkajs-inner.ts';
import { bodyOf, readAnswer } from './call.ts';
import type { Address, Answer, Call } from './call.ts';
import { protocolError } from './protocol-errors.ts';

/** A call that no broker has got: nothing has come of it. */
export class NotSent extends Error {
  override readonly name = 'NotSent';
}

/** A call that went out and was not answered: nobody knows what has come of it. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/** What kafkajs has thrown, where a connection is to blame. */
export function kafkasOf(error: unknown): unknown {
  return error instanceof NoAnswer || error instanceof NotSent ? error.cause : error;
}

/** Connections to brokers: one each, made when it is needed, for one call after the other. */
export interface Brokers {
  /** @throws {@link NotSent} or {@link NoAnswer}, with kafkajs' error as their cause. */
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
  /** At once: what is under way goes without an answer. */
  close(): void;
}

/** How long a connection may take to be made, with TLS and login, ms: a broker may take it and say nothing. */
const CONNECT_WITHIN_MS = 5_000;
/** The same where another broker can be asked as well. */
const ANY_ANSWER_WITHIN_MS = 3_000;
/** How long an answer may take, ms. Behind it the connection is closed: what it still brings belongs to nothing. */
const ANSWER_WITHIN_MS = 10_000;
/** What is sent may take its time on the way: a call of so many bytes has a millisecond more. */
const LEAST_BYTES_PER_MS = 100;
/**
 * A login is used up to that part of its life, and then there is a new connection. kafkajs would log in again
 * among answers that are still to come, and take the next of them for that of the login.
 */
const USED_UP_AT = 2 / 3;
const METADATA_MAX_AGE_MS = 300_000;

/** Connects to nothing yet. */
export function brokersOf(kafka: Kafka): Brokers {
  const cluster = clusterOf(kafka, {
    metadataMaxAge: METADATA_MAX_AGE_MS, // never asked for: metadata are read by ourselves
    allowAutoTopicCreation: false,
  });
  const links = new Map<string, Promise<Broker>>();
  /** By address, until when a broker reads nothing, as it has a quota: `performance.now()`. */
  const throttled = new Map<string, number>();
  const closing = new AbortController();
  let known: readonly Address[] = [];

  const drop = (link: Promise<Broker>, name: string): void => {
    if (links.get(name) === link) links.delete(name);
  };

  const connect = async (address: Address): Promise<Broker> => {
    const connectionPool = await cluster.connectionPoolBuilder.build(address);
    const broker = cluster.brokerPool.createBroker({ connectionPool, logger: cluster.rootLogger });
    const [connection] = connectionPool.pool;
    const connecting = broker.connect();
    const giveUp = (error: Error) => {
      end(connection, error);
      void connecting.finally(() => end(connection, error)).catch(() => undefined); // it may just have begun
    };
    const onClose = () => giveUp(isClosed());
    closing.signal.addEventListener('abort', onClose);
    try {
      await within(CONNECT_WITHIN_MS, connecting, nameOf(address), 'no connection');
    } catch (error) {
      giveUp(error as Error);
      throw error;
    } finally {
      closing.signal.removeEventListener('abort', onClose);
    }
    connection.reauthenticationThreshold = 0;
    return broker;
  };

  const linkTo = async (address: Address): Promise<Broker> => {
    const name = nameOf(address);
    const found = links.get(name);
    if (found) {
      const [connection] = (await found).connectionPool.pool;
      if (isFit(connection)) return found;
      drop(found, name);
      end(connection, new kafkajs.KafkaJSConnectionError('the login has run out'));
    }
    const link = connect(address);
    links.set(name, link);
    try {
      const broker = await link;
      if (closing.signal.aborted) end(broker.connectionPool.pool[0], isClosed());
      return broker;
    } catch (error) {
      drop(link, name);
      throw error;
    }
  };

  const ask = async <T>(
    address: Address,
    call: Call<T>,
    withinMs = ANSWER_WITHIN_MS,
  ): Promise<T> => {
    const name = nameOf(address);
    let connection: Connection;
    try {
      if (closing.signal.aborted) throw isClosed();
      const broker = await linkTo(address);
      expectSpoken(broker, call);
      [connection] = broker.connectionPool.pool;
      if (!connection.isConnected()) throw new kafkajs.KafkaJSConnectionError('Closed connection');
    } catch (cause) {
      if (cause instanceof kafkajs.KafkaJSProtocolError) throw cause;
      throw new NotSent(`${call.name} was not sent to ${name}`, { cause });
    }
    try {
      const quietMs = Math.max(0, (throttled.get(name) ?? 0) - performance.now());
      const limitMs = withinMs + quietMs + call.body.length / LEAST_BYTES_PER_MS;
      const sent = connection.send(exchangeOf(call));
      const { value, throttleMs } = await within(limitMs, sent, name, call.name);
      if (throttleMs > 0) throttled.set(name, performance.now() + throttleMs);
      return value;
    } catch (cause) {
      end(connection, cause as Error);
      throw new NoAnswer(`${name} has not answered ${call.name}`, { cause });
    }
  };

  /** Those that the settings name: kafkajs gives them in turn, again and again. */
  const seeds = async (): Promise<Address[]> => {
    const found = new Map<string, Address>();
    for (;;) {
      const { host, port } = await cluster.connectionPoolBuilder.build();
      const name = nameOf({ host, port });
      if (found.has(name)) return [...found.values()];
      found.set(name, { host, port });
    }
  };

  const askAny = async <T>(call: Call<T>, first?: 'others'): Promise<T> => {
    const inOrder = first === 'others' ? [...known.slice(1), ...known.slice(0, 1)] : known;
    const all = new Map([...inOrder, ...(await seeds())].map((each) => [nameOf(each), each]));
    let last: unknown;
    for (const address of all.values()) {
      try {
        const answer = await ask(address, call, ANY_ANSWER_WITHIN_MS);
        known = [address, ...known.filter((each) => nameOf(each) !== nameOf(address))];
        return answer;
      } catch (error) {
        last = error;
      }
    }
    throw last;
  };

  return {
    ask,
    askAny,
    know: (addresses) => {
      const names = new Set(addresses.map(nameOf));
      const first = known.filter((each) => names.has(nameOf(each))).slice(0, 1); // it answers
      known = [...first, ...addresses];
    },
    closed: closing.signal,
    close: () => {
      closing.abort();
      for (const link of links.values()) {
        link.then(
          ({ connectionPool }) => end(connectionPool.pool[0], isClosed()),
          () => undefined, // whoever waits for it has its error
        );
      }
      links.clear();
    },
  };
}

function nameOf({ host, port }: Address): string {
  return `${host}:${port}`;
}

function isClosed(): Error {
  return new kafkajs.KafkaJSConnectionError('the producer is closed');
}

const UNSUPPORTED_VERSION = 35;

/** A broker closes the connection on what it does not understand: whoever asks would try it for ever. */
function expectSpoken({ versions }: Broker, { name, key, version }: Call<unknown>): void {
  const spoken = versions?.[key];
  if (!spoken || version < spoken.minVersion || version > spoken.maxVersion) {
    throw protocolError(UNSUPPORTED_VERSION, name);
  }
}

/** Whether the next call can go over it, as far as this side knows. */
function isFit(connection: Connection): boolean {
  if (!connection.isConnected()) return false;
  const lifeMs = Number(connection.sessionLifetime.toString());
  if (lifeMs === 0 || connection.authenticatedAt === null) return true;
  const [seconds, nanos] = process.hrtime([...connection.authenticatedAt]);
  return seconds * 1_000 + nanos / 1e6 < USED_UP_AT * lifeMs;
}

/** At once, without waiting for what is under way: whoever waits for that gets the error. */
function end(connection: Connection, error: Error): void {
  connection.rejectRequests(error);
  const { socket } = connection;
  void connection.disconnect().then(() => socket?.destroy());
}

/** kafkajs has a time limit of its own, which belongs to whoever made the `Kafka`. */
async function within<T>(ms: number, work: Promise<T>, broker: string, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const message = `${what}: no answer in ${ms / 1_000} s`;
      reject(new kafkajs.KafkaJSConnectionError(message, { broker }));
    }, ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined); // when it is late its own error comes to nobody
  }
}

/** A call as kafkajs' connections take it. */
function exchangeOf<T>(call: Call<T>): Exchange<Answer<T>> {
  const { name, key, version } = call;
  const buffer = bodyOf(call);
  return {
    request: {
      apiName: name,
      apiKey: key,
      apiVersion: version,
      encode: () => Promise.resolve({ buf: buffer, buffer }),
    },
    response: { decode: (bytes) => readAnswer(call, bytes), parse: (decoded) => decoded },
  };
}
