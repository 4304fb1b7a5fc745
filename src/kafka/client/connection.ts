// One connection to a broker, made by kafkajs and used by many calls at once.

import kafkajs from 'kafkajs';
import { bodyOf, nameOf, readAnswer, CallUnanswered, CallNotSent } from './protocol.ts';
import type { Address, Answer, Call } from './protocol.ts';
import type { Broker, Cluster, Connection, Exchange } from './kafkajs-inner.ts';
import { ERROR, protocolError } from './protocol-errors.ts';

/** One connection to a broker, possibly still connecting. Several calls may be in flight; the broker responds to them in order. */
export interface BrokerConnection {
  /** Number of calls that wait for the connection or for their response. */
  readonly inFlight: number;
  /** Whether the connection can be used for the next call, as far as this process knows. */
  readonly isUsable: boolean;
  /** Sends a call. @throws {@link CallNotSent} or {@link CallUnanswered}, with kafkajs' error as the cause. */
  send<T>(call: Call<T>, options: CallOptions): Promise<T>;
  /** Closes the connection as soon as no call is in flight. It must not be used for new calls. */
  retire(): void;
  /** Closes the connection at once, and rejects calls in flight with `error`. */
  close(error: Error): void;
}

export interface CallOptions {
  /**
   * Longest wait for the response, in ms, once the responses to all earlier calls on the connection have arrived. After that the connection
   * is closed.
   */
  readonly withinMs: number;
  /** Signal that is aborted when the caller stops waiting for the response; the reason is an error of kafkajs. */
  readonly signal: AbortSignal;
}

/** The time for which a broker still throttles this client because of a Kafka quota. The broker reads no requests meanwhile. */
export interface ThrottleTime {
  readonly leftMs: () => number;
  readonly begin: (ms: number) => void;
}

interface BrokerConnectionOptions {
  readonly cluster: Pick<Cluster, 'connectionPoolBuilder' | 'brokerPool' | 'rootLogger'>;
  readonly address: Address;
  readonly throttle: ThrottleTime;
  /** Idle time after which the connection is closed, in ms. */
  readonly idleMs: number;
  readonly onClosed: () => void;
  /** Called when a call got no response, before anything else is sent. */
  readonly onNoResponse: () => void;
}

/** Longest time to set up a connection with TLS and login, in ms: a broker may accept it and never respond. */
const SESSION_SETUP_TIMEOUT_MS = 5_000;
/** Slowest upload that is tolerated, in bytes per ms: a call's timeout is extended by its size at this rate. */
const MIN_BYTES_PER_MS = 100;
/**
 * Fraction of a login's lifetime after which a new connection is opened. On the old connection kafkajs would log in again while responses
 * are pending, and mistake the next of them for the response to the login.
 */
const SESSION_RENEWAL_SHARE = 2 / 3;

export function openConnection(options: BrokerConnectionOptions): BrokerConnection {
  const { cluster, address, throttle, idleMs, onClosed, onNoResponse } = options;
  const name = nameOf(address);
  const closing = new AbortController();
  /** Functions that reject the pending promises when the connection is closed. */
  const waiting = new Set<(error: Error) => void>();
  let connection: Connection | undefined;
  let inFlight = 0;
  let isRetired = false;
  let idle: NodeJS.Timeout | undefined;
  /** Promise that resolves when all calls sent so far have been answered. */
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
    inFlight += 1;
    clearTimeout(idle);
  };
  const leave = (): void => {
    inFlight -= 1;
    if (inFlight > 0 || closing.signal.aborted) return;
    if (isRetired) close(connectionClosedError(name, 'the connection is being retired'));
    else
      idle = setTimeout(
        () => close(connectionClosedError(name, 'closed after being idle')),
        idleMs,
      );
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
  opened.catch(close); // calls that wait for it get its error

  const send = async <T>(over: Connection, call: Call<T>, withinMs: number): Promise<T> => {
    const before = ahead;
    const answer = unlessClosed(over.send(exchangeOf(call))).then(({ value, throttleMs }) => {
      if (throttleMs > 0) throttle.begin(throttleMs);
      return value;
    });
    ahead = answer.catch(() => undefined); // its caller gets the error
    try {
      // An earlier call, such as a Produce, may be slow: that must not count as a timeout of this call.
      await Promise.race([before, answer]);
      const limitMs = withinMs + throttle.leftMs() + call.body.length / MIN_BYTES_PER_MS;
      return await withTimeout(limitMs, answer, name, call.name);
    } catch (cause) {
      // Closed before anything else is sent: a late response on it could not be matched to a call.
      close(connectionClosedError(name, `closed because ${call.name} was not answered in time`));
      onNoResponse();
      throw new CallUnanswered(`${name} has not answered ${call.name}`, { cause });
    }
  };

  return {
    get inFlight() {
      return inFlight;
    },
    get isUsable() {
      if (closing.signal.aborted || isRetired) return false;
      return (
        connection === undefined || (connection.isConnected() && !isSessionExpiring(connection))
      );
    },
    send: async (call, { withinMs, signal }) => {
      enter();
      let over: Connection;
      try {
        const made = await unlessAborted(signal, opened);
        expectSupported(made.broker, call);
        over = made.connection;
        if (closing.signal.aborted) throw closing.signal.reason;
        if (!over.isConnected()) throw connectionClosedError(name, 'Closed connection');
      } catch (cause) {
        leave();
        if (cause instanceof kafkajs.KafkaJSProtocolError) throw cause;
        throw new CallNotSent(`${call.name} was not sent to ${name}`, { cause });
      }
      // A call whose caller aborts stays in flight: its response is still to come.
      const answer = send(over, call, withinMs).finally(leave);
      try {
        return await unlessAborted(signal, answer);
      } catch (cause) {
        if (cause instanceof CallUnanswered) throw cause;
        throw new CallUnanswered(`the caller stopped waiting for ${name} to answer ${call.name}`, {
          cause,
        });
      }
    },
    retire: () => {
      isRetired = true;
      if (inFlight === 0) close(connectionClosedError(name, 'the connection is being retired'));
    },
    close,
  };
}

async function connect(
  cluster: BrokerConnectionOptions['cluster'],
  address: Address,
  closed: AbortSignal,
): Promise<Broker> {
  const connectionPool = await cluster.connectionPoolBuilder.build(address);
  closed.throwIfAborted();
  const broker = cluster.brokerPool.createBroker({ connectionPool, logger: cluster.rootLogger });
  const [connection] = connectionPool.pool;
  connection.requestQueue.enforceRequestTimeout = false; // every call has its own timeout
  const connecting = broker.connect();
  const giveUp = (error: Error) => {
    endConnection(connection, error);
    void connecting.finally(() => endConnection(connection, error)).catch(() => undefined); // a socket may just have been opened
  };
  const onClose = () => giveUp(closed.reason as Error);
  closed.addEventListener('abort', onClose);
  try {
    await withTimeout(SESSION_SETUP_TIMEOUT_MS, connecting, nameOf(address), 'no connection');
  } catch (error) {
    giveUp(error as Error);
    throw error;
  } finally {
    closed.removeEventListener('abort', onClose);
  }
  connection.reauthenticationThreshold = 0;
  return broker;
}

function connectionClosedError(broker: string, message: string): Error {
  return new kafkajs.KafkaJSConnectionError(message, { broker });
}

/**
 * Checks that the broker supports this version of a request. Otherwise the broker would close the connection, and the caller would retry
 * without end.
 *
 * @throws kafkajs' protocol error UNSUPPORTED_VERSION.
 */
function expectSupported({ versions }: Broker, { name, key, version }: Call<unknown>): void {
  const spoken = versions?.[key];
  if (!spoken || version < spoken.minVersion || version > spoken.maxVersion) {
    throw protocolError(ERROR.UNSUPPORTED_VERSION, name);
  }
}

function isSessionExpiring(connection: Connection): boolean {
  const lifeMs = Number(connection.sessionLifetime.toString());
  if (lifeMs === 0 || connection.authenticatedAt === null) return false;
  const [seconds, nanos] = process.hrtime([...connection.authenticatedAt]);
  return seconds * 1_000 + nanos / 1e6 >= SESSION_RENEWAL_SHARE * lifeMs;
}

/** Closes a connection of kafkajs at once, and rejects requests in flight with `error`. */
export function endConnection(connection: Connection, error: Error): void {
  connection.rejectRequests(error);
  const { socket } = connection;
  void connection.disconnect().then(() => {
    connection.rejectRequests(error); // a request may have been added before kafkajs was disconnected
    socket?.destroy();
  });
}

async function withTimeout<T>(
  ms: number,
  work: Promise<T>,
  broker: string,
  what: string,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(connectionClosedError(broker, `${what}: no answer in ${ms / 1_000} s`)),
      ms,
    );
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined); // after a timeout its own error must not go unhandled
  }
}

/** Awaits `work`, or rejects with the signal's reason as soon as it is aborted; the result of `work` is then ignored. */
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

/** Converts a call to the form that kafkajs' connections send. */
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
