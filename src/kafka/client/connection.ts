// One connection to a broker, made by kafkajs and used by many calls at once.

import { setMaxListeners } from 'node:events';
import kafkajs from 'kafkajs';
import { within } from '../../core/within.ts';
import { bodyOf, nameOf, readAnswer, CallUnanswered, CallNotSent } from './protocol.ts';
import type { Address, Call } from './protocol.ts';
import type { Broker, Cluster, Connection, Exchange } from './kafkajs-inner.ts';
import { ERROR, protocolError, responseError } from './protocol-errors.ts';

export interface CallOptions {
  /**
   * Longest wait for the response, in ms. After that, the connection is closed. The wait for the responses to earlier calls on the
   * connection is not counted, nor is the time to send the call's bytes or the time for which the broker throttles this client.
   */
  readonly withinMs: number;
  /** Aborted when the caller stops waiting for the response. Its reason is an error of kafkajs. */
  readonly signal: AbortSignal;
}

/** The time for which a broker throttles this client because of a Kafka quota. During that time the broker reads no requests. */
export class ThrottleTime {
  #until = 0;

  get leftMs(): number {
    return Math.max(0, this.#until - performance.now());
  }

  begin(ms: number): void {
    this.#until = Math.max(this.#until, performance.now() + ms);
  }
}

interface BrokerConnectionOptions {
  readonly cluster: Cluster;
  readonly address: Address;
  readonly throttle: ThrottleTime;
  /** Idle time after which the connection is closed, in ms. */
  readonly idleMs: number;
  readonly onClosed: () => void;
  /**
   * Called for each call that was sent on this connection and got no response. The connection is closed by then, and the call's promise is
   * not yet rejected.
   */
  readonly onNoResponse: () => void;
}

/**
 * Longest time to set up a connection with TLS and login, in ms. Without a limit, a broker that accepts connections and never responds
 * would block callers.
 */
const SESSION_SETUP_TIMEOUT_MS = 5_000;
/** Slowest tolerated upload, in bytes per ms. A call's timeout is extended by the time that its bytes take at this rate. */
const MIN_BYTES_PER_MS = 100;
/**
 * Fraction of a login's lifetime (KIP-368) after which a new connection replaces the old one. If it is too large, kafkajs 2.2 logs in again
 * while responses are pending, and mistakes one of them for the response to the login.
 */
const SESSION_RENEWAL_SHARE = 2 / 3;

/**
 * One connection to a broker, on which several calls may be in flight. The broker responds to them in order.
 *
 * The connection opens at once, and calls wait until it is open. It closes after an error, after a call without a response, after an idle
 * time, or through `close` or `retire`. Closing rejects pending calls.
 */
export class BrokerConnection {
  readonly #options: BrokerConnectionOptions;
  readonly #name: string;
  readonly #opened: Promise<Broker>;
  readonly #closing = new AbortController();
  #connection: Connection | undefined;
  #isRetired = false;
  #inFlight = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  /** Resolves when each call that was sent on this connection so far has got its response or has failed. */
  #answered: Promise<unknown> = Promise.resolve();

  constructor(options: BrokerConnectionOptions) {
    this.#options = options;
    this.#name = nameOf(options.address);
    setMaxListeners(0, this.#closing.signal); // each call in flight adds a listener: Node would warn about more than ten
    this.#opened = unlessAborted(this.#closing.signal, this.#open());
    this.#opened.catch((error: Error) => this.close(error)); // calls that wait for it get its error
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get isUsable(): boolean {
    const connection = this.#connection;
    if (this.#closing.signal.aborted || this.#isRetired) return false;
    return !connection || (connection.isConnected() && !isSessionExpiring(connection));
  }

  /** Sends a call and returns the response. @throws `CallNotSent`, `CallUnanswered`; `KafkaJSProtocolError` if the call is unsupported. */
  async send<T>(call: Call<T>, { withinMs, signal }: CallOptions): Promise<T> {
    this.#enter();
    let connection: Connection;
    try {
      connection = await this.#openFor(call, signal);
    } catch (cause) {
      this.#leave();
      if (cause instanceof kafkajs.KafkaJSProtocolError) throw cause;
      throw new CallNotSent(`${call.name} was not sent to ${this.#name}`, { cause });
    }
    // A call whose caller aborts stays in flight: its response is still to come.
    const answer = this.#exchange(connection, call, withinMs).finally(() => this.#leave());
    try {
      return await unlessAborted(signal, answer);
    } catch (cause) {
      if (cause instanceof CallUnanswered) throw cause;
      const message = `the caller stopped waiting for ${this.#name} to answer ${call.name}`;
      throw new CallUnanswered(message, { cause });
    }
  }

  /** Closes the connection as soon as no call is in flight. New calls must use another one. */
  retire(): void {
    this.#isRetired = true;
    if (this.#inFlight === 0) this.#closeBecause('the connection is being retired');
  }

  close(error: Error): void {
    if (this.#closing.signal.aborted) return;
    clearTimeout(this.#idleTimer);
    this.#closing.abort(error);
    if (this.#connection) endConnection(this.#connection, error);
    this.#options.onClosed();
  }

  #closeBecause(message: string): void {
    this.close(connectionClosedError(this.#name, message));
  }

  async #open(): Promise<Broker> {
    const { cluster, address } = this.#options;
    const { signal } = this.#closing;
    const broker = await connect(cluster, address, signal);
    const [connection] = broker.connectionPool.pool;
    this.#connection = connection;
    if (signal.aborted) endConnection(connection, signal.reason as Error);
    return broker;
  }

  /** Waits until the connection is open, and checks that the broker supports the call. */
  async #openFor(call: Call<unknown>, signal: AbortSignal): Promise<Connection> {
    const broker = await unlessAborted(signal, this.#opened);
    const [connection] = broker.connectionPool.pool;
    expectSupported(broker, call);
    this.#closing.signal.throwIfAborted();
    if (!connection.isConnected()) throw connectionClosedError(this.#name, 'Closed connection');
    return connection;
  }

  async #exchange<T>(connection: Connection, call: Call<T>, withinMs: number): Promise<T> {
    const { address, throttle, onNoResponse } = this.#options;
    const before = this.#answered;
    const exchange = exchangeOf(call, bodyOf(call), address, (bytes) => readAnswer(call, bytes));
    const answer = unlessAborted(this.#closing.signal, connection.send(exchange)).then(
      (received) => {
        if (received.throttleMs > 0) throttle.begin(received.throttleMs);
        return received.value;
      },
    );
    this.#answered = answer.catch(() => undefined); // its caller gets the error
    try {
      // An earlier call, such as a Produce, may be slow: that must not count as a timeout of this call.
      await Promise.race([before, answer]);
      const limitMs = withinMs + throttle.leftMs + call.body.length / MIN_BYTES_PER_MS;
      return await withTimeout(limitMs, answer, this.#name, call.name);
    } catch (cause) {
      // Closed before anything else is sent: a late response on it could not be matched to a call.
      this.#closeBecause(`closed after an earlier request: ${(cause as Error).message}`);
      onNoResponse();
      throw new CallUnanswered(`${this.#name} has not answered ${call.name}`, { cause });
    }
  }

  #enter(): void {
    this.#inFlight += 1;
    clearTimeout(this.#idleTimer);
  }

  #leave(): void {
    this.#inFlight -= 1;
    if (this.#inFlight > 0 || this.#closing.signal.aborted) return;
    if (this.#isRetired) this.#closeBecause('the connection is being retired');
    else {
      const close = () => this.#closeBecause('closed after being idle');
      this.#idleTimer = setTimeout(close, this.#options.idleMs);
    }
  }
}

async function connect(cluster: Cluster, address: Address, closed: AbortSignal): Promise<Broker> {
  const connectionPool = await cluster.connectionPoolBuilder.build(address);
  closed.throwIfAborted();
  const broker = cluster.brokerPool.createBroker({ connectionPool, logger: cluster.rootLogger });
  const [connection] = connectionPool.pool;
  connection.requestQueue.enforceRequestTimeout = false; // every call has its own timeout
  const connecting = broker.connect();
  try {
    const work = unlessAborted(closed, connecting);
    await withTimeout(SESSION_SETUP_TIMEOUT_MS, work, nameOf(address), 'no connection');
  } catch (error) {
    const end = () => endConnection(connection, error as Error);
    end();
    void connecting.finally(end).catch(() => undefined); // a socket may just have been opened
    throw error;
  }
  connection.reauthenticationThreshold = 0;
  return broker;
}

function connectionClosedError(broker: string, message: string): Error {
  return new kafkajs.KafkaJSConnectionError(message, { broker });
}

/**
 * Throws if the broker does not support this version of a request. Brokers close the connection at such a request, and the caller would
 * retry without end.
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

/** Awaits `work` for at most `ms` ms. After that, rejects with a connection error of kafkajs, whose message begins with `what`. */
function withTimeout<T>(ms: number, work: Promise<T>, broker: string, what: string): Promise<T> {
  return within(ms, work, () =>
    connectionClosedError(broker, `${what}: no answer in ${ms / 1_000} s`),
  );
}

/** Awaits `work`, or rejects with the signal's reason as soon as the signal is aborted. */
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

/**
 * Creates a request for kafkajs.
 *
 * @param body Part of the request after its header.
 * @param decode Decodes the part of the response after its header. If it throws a `RangeError`, because the response is truncated, the
 * request fails with {@link responseError}.
 */
export function exchangeOf<T>(
  { name, key, version }: Pick<Call<unknown>, 'name' | 'key' | 'version'>,
  body: Buffer,
  broker: Address,
  decode: (bytes: Buffer) => T,
): Exchange<T> {
  const encode = () => Promise.resolve({ buf: body, buffer: body });
  return {
    request: { apiName: name, apiKey: key, apiVersion: version, encode },
    response: {
      decode: (bytes) => {
        try {
          return decode(bytes);
        } catch (cause) {
          if (!(cause instanceof RangeError)) throw cause;
          throw responseError(broker, name, "can't be decoded", cause);
        }
      },
      parse: (decoded) => decoded,
    },
  };
}
