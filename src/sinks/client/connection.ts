// One connection to a broker, made by kafkajs, used by many calls at once.

import kafkajs from 'kafkajs';
import { bodyOf, nameOf, readAnswer, NoAnswer, NotSent } from './protocol.ts';
import type { Address, Answer, Call } from './protocol.ts';
import type { Broker, Cluster, Connection, Exchange } from './kafkajs-inner.ts';
import { ERROR, protocolError } from './protocol-errors.ts';

/** One connection to a broker, from when it begins to be made. Many may use it at once: a broker answers in order. */
export interface BrokerConnection {
  /** Calls that wait for it to be made, or for their answers. */
  readonly underWay: number;
  /** Whether the next call can go over it, as far as this side knows. */
  readonly isFit: boolean;
  /** @throws {@link NotSent} or {@link NoAnswer}, with kafkajs' error as their cause. */
  ask<T>(call: Call<T>, options: AskOptions): Promise<T>;
  /** Is closed as soon as nothing is under way on it. Nobody may ask over it any more. */
  retire(): void;
  /** At once: what is under way goes without an answer. */
  close(error: Error): void;
}

export interface AskOptions {
  /** How long the answer may take, ms, once all before it have come. Behind that the connection is closed. */
  readonly withinMs: number;
  /** Aborted when nobody waits for the answer any more; the reason is an error of kafkajs. */
  readonly signal: AbortSignal;
}

/** The time in which a broker reads nothing more of this client, as it has a quota. */
export interface QuietTime {
  readonly leftMs: () => number;
  readonly begin: (ms: number) => void;
}

interface ConnectionOptions {
  readonly cluster: Pick<Cluster, 'connectionPoolBuilder' | 'brokerPool' | 'rootLogger'>;
  readonly address: Address;
  readonly quiet: QuietTime;
  /** For how long nobody may have used it, ms: then it is closed. */
  readonly idleMs: number;
  readonly onClosed: () => void;
  /** A call was not answered: called before anything is sent again. */
  readonly onNoAnswer: () => void;
}

/** How long a connection may take to be made, with TLS and login, ms: a broker may take it and say nothing. */
const CONNECT_WITHIN_MS = 5_000;
/** What is sent may take its time on the way: a call of so many bytes has a millisecond more. */
const LEAST_BYTES_PER_MS = 100;
/**
 * A login is used up to that part of its life, and then there is a new connection. kafkajs would log in again
 * among answers that are still to come, and take the next of them for that of the login.
 */
const USED_UP_AT = 2 / 3;

export function openConnection(options: ConnectionOptions): BrokerConnection {
  const { cluster, address, quiet, idleMs, onClosed, onNoAnswer } = options;
  const name = nameOf(address);
  const closing = new AbortController();
  /** Those who wait for something of it, and learn of its end. */
  const waiting = new Set<(error: Error) => void>();
  let connection: Connection | undefined;
  let underWay = 0;
  let isRetired = false;
  let idle: NodeJS.Timeout | undefined;
  /** Resolves when everything that was sent has been answered. */
  let ahead: Promise<unknown> = Promise.resolve();

  const close = (error: Error): void => {
    if (closing.signal.aborted) return;
    clearTimeout(idle);
    closing.abort(error);
    for (const reject of waiting) reject(error);
    if (connection) endConnection(connection, error);
    onClosed();
  };
  const enter = (): void => {
    underWay += 1;
    clearTimeout(idle);
  };
  const leave = (): void => {
    underWay -= 1;
    if (underWay > 0 || closing.signal.aborted) return;
    if (isRetired) close(lost(name, 'nobody may use it any more'));
    else idle = setTimeout(() => close(lost(name, 'nobody has used it')), idleMs);
  };
  const unlessClosed = <T>(work: Promise<T>): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      waiting.add(reject);
      void work.then(resolve, reject).finally(() => waiting.delete(reject));
    });

  const opened = unlessClosed(
    connect(cluster, address, closing.signal).then((broker) => {
      [connection] = broker.connectionPool.pool;
      if (closing.signal.aborted) endConnection(connection, closing.signal.reason as Error);
      return { broker, connection };
    }),
  );
  opened.catch(close); // whoever waits for it has its error

  const send = async <T>(over: Connection, call: Call<T>, withinMs: number): Promise<T> => {
    const before = ahead;
    const answer = unlessClosed(over.send(exchangeOf(call))).then(({ value, throttleMs }) => {
      if (throttleMs > 0) quiet.begin(throttleMs);
      return value;
    });
    ahead = answer.catch(() => undefined); // its sender has it
    try {
      // A Produce before it may take its time. That it does is not this call's fault, and no reason to close.
      await Promise.race([before, answer]);
      const limitMs = withinMs + quiet.leftMs() + call.body.length / LEAST_BYTES_PER_MS;
      return await within(limitMs, answer, name, call.name);
    } catch (cause) {
      // Before anything is sent again: what it still brings belongs to nothing.
      close(lost(name, `it was closed, as ${call.name} was not answered`));
      onNoAnswer();
      throw new NoAnswer(`${name} has not answered ${call.name}`, { cause });
    }
  };

  return {
    get underWay() {
      return underWay;
    },
    get isFit() {
      if (closing.signal.aborted || isRetired) return false;
      return connection === undefined || (connection.isConnected() && !isUsedUp(connection));
    },
    ask: async (call, { withinMs, signal }) => {
      enter();
      let over: Connection;
      try {
        const made = await unlessAborted(signal, opened);
        expectSpoken(made.broker, call);
        over = made.connection;
        if (closing.signal.aborted) throw closing.signal.reason;
        if (!over.isConnected()) throw lost(name, 'Closed connection');
      } catch (cause) {
        leave();
        if (cause instanceof kafkajs.KafkaJSProtocolError) throw cause;
        throw new NotSent(`${call.name} was not sent to ${name}`, { cause });
      }
      // Who leaves it leaves its place in line taken: the answer is still to come.
      const answer = send(over, call, withinMs).finally(leave);
      try {
        return await unlessAborted(signal, answer);
      } catch (cause) {
        if (cause instanceof NoAnswer) throw cause;
        throw new NoAnswer(`nobody waits for ${name} to answer ${call.name}`, { cause });
      }
    },
    retire: () => {
      isRetired = true;
      if (underWay === 0) close(lost(name, 'nobody may use it any more'));
    },
    close,
  };
}

async function connect(
  cluster: ConnectionOptions['cluster'],
  address: Address,
  closed: AbortSignal,
): Promise<Broker> {
  const connectionPool = await cluster.connectionPoolBuilder.build(address);
  closed.throwIfAborted();
  const broker = cluster.brokerPool.createBroker({ connectionPool, logger: cluster.rootLogger });
  const [connection] = connectionPool.pool;
  connection.requestQueue.enforceRequestTimeout = false; // every call has a limit of its own
  const connecting = broker.connect();
  const giveUp = (error: Error) => {
    endConnection(connection, error);
    void connecting.finally(() => endConnection(connection, error)).catch(() => undefined); // it may just have begun
  };
  const onClose = () => giveUp(closed.reason as Error);
  closed.addEventListener('abort', onClose);
  try {
    await within(CONNECT_WITHIN_MS, connecting, nameOf(address), 'no connection');
  } catch (error) {
    giveUp(error as Error);
    throw error;
  } finally {
    closed.removeEventListener('abort', onClose);
  }
  connection.reauthenticationThreshold = 0;
  return broker;
}

function lost(broker: string, message: string): Error {
  return new kafkajs.KafkaJSConnectionError(message, { broker });
}

/** A broker closes the connection on what it does not understand: whoever asks would try it for ever. */
function expectSpoken({ versions }: Broker, { name, key, version }: Call<unknown>): void {
  const spoken = versions?.[key];
  if (!spoken || version < spoken.minVersion || version > spoken.maxVersion) {
    throw protocolError(ERROR.UNSUPPORTED_VERSION, name);
  }
}

function isUsedUp(connection: Connection): boolean {
  const lifeMs = Number(connection.sessionLifetime.toString());
  if (lifeMs === 0 || connection.authenticatedAt === null) return false;
  const [seconds, nanos] = process.hrtime([...connection.authenticatedAt]);
  return seconds * 1_000 + nanos / 1e6 >= USED_UP_AT * lifeMs;
}

/** At once, without waiting for what is under way: whoever waits for that gets the error. */
export function endConnection(connection: Connection, error: Error): void {
  connection.rejectRequests(error);
  const { socket } = connection;
  void connection.disconnect().then(() => {
    connection.rejectRequests(error); // one may have come until it counted as disconnected
    socket?.destroy();
  });
}

async function within<T>(ms: number, work: Promise<T>, broker: string, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(lost(broker, `${what}: no answer in ${ms / 1_000} s`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined); // when it is late its own error comes to nobody
  }
}

/** Rejects with the signal's reason as soon as there is one; what comes of the work then comes to nobody. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let onAbort = () => undefined as void;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
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
