// The shared connections to a cluster's brokers.

import { setTimeout as pause } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { nameOf, CallNotSent } from './protocol.ts';
import type { Address, Call } from './protocol.ts';
import { openConnection } from './connection.ts';
import type { CallOptions, BrokerConnection, ThrottleTime } from './connection.ts';
import { clusterOf } from './kafkajs-inner.ts';

/** Shared connections to the brokers of a cluster: a few to each broker, opened when they are needed. */
export interface Connections {
  /**
   * Sends a call over the connection to this broker that has the fewest calls in flight. Calls are queued without a limit: each caller has
   * only a few in flight. While the broker throttles this client, calls wait.
   *
   * After a timeout or an abort the broker may still carry out the request, also later.
   *
   * @throws `CallNotSent` or `CallUnanswered`, with kafkajs' error as the cause.
   */
  send<T>(address: Address, call: Call<T>, options: CallOptions): Promise<T>;
  /** Returns the broker addresses in the settings. */
  seeds(): Promise<readonly Address[]>;
  /**
   * Sets the addresses that the cluster's brokers advertise. Connections to addresses of the settings that no broker advertises are closed:
   * those brokers are reached under their advertised addresses.
   */
  setAdvertised(addresses: readonly Address[]): void;
  /** Closes all connections; calls in flight are rejected. */
  close(): void;
}

export interface ConnectionsOptions {
  /** Most connections to one broker. There may be one more for a moment while an expiring login is replaced. */
  readonly perBroker: number;
  /** Idle time after which a connection is closed, in ms. Default 60,000. */
  readonly idleMs?: number;
}

/** Default idle time after which a connection is closed, in ms. */
const IDLE_MS = 60_000;
/** Age at which kafkajs refreshes metadata, in ms. kafkajs requires the option; it has no effect, as our own calls request metadata. */
const METADATA_MAX_AGE_MS = 300_000;

/** Open connections to one broker, and how long it throttles this client. */
interface BrokerEntry {
  readonly connections: Set<BrokerConnection>;
  readonly throttle: ThrottleTime;
}

/** Creates the shared connections of a cluster, without connecting. */
export function connectionsOf(kafka: Kafka, options: ConnectionsOptions): Connections {
  const { perBroker, idleMs = IDLE_MS } = options;
  const cluster = clusterOf(kafka, {
    metadataMaxAge: METADATA_MAX_AGE_MS,
    allowAutoTopicCreation: false,
  });
  const brokers = new Map<string, BrokerEntry>();
  const seedNames = new Set<string>();
  /** Advertised broker addresses as `host:port`; empty until {@link Connections.setAdvertised} is called. */
  let advertised: ReadonlySet<string> = new Set();
  /**
   * Whether a broker address is in the settings, but no broker advertises it. One connection to such an address suffices: it only serves to
   * find the brokers.
   */
  const isSeedAlone = (name: string) => seedNames.has(name) && !advertised.has(name);
  const closing = new AbortController();
  let seeking: Promise<readonly Address[]> | undefined;

  const brokerAt = (address: Address): BrokerEntry => {
    const name = nameOf(address);
    const found = brokers.get(name) ?? { connections: new Set(), throttle: throttleTime() };
    brokers.set(name, found);
    return found;
  };
  const open = (address: Address): BrokerConnection => {
    const { connections, throttle } = brokerAt(address);
    const onClosed = () => {
      connections.delete(connection);
      // The broker may never return under that address.
      if (connections.size === 0 && throttle.leftMs() === 0) brokers.delete(nameOf(address));
    };
    // The other connections may be dead too: idle ones are closed, so that no call has to time out on each of them in turn.
    const onNoResponse = () => {
      for (const each of connections) if (each.inFlight === 0) each.retire();
    };
    const connection = openConnection({
      cluster,
      address,
      throttle,
      idleMs,
      onClosed,
      onNoResponse,
    });
    connections.add(connection);
    return connection;
  };
  /**
   * Returns the connection to a broker with the fewest calls in flight, or a new one while all are busy and more are allowed. Of several
   * equal ones it is the oldest, so that the others become idle and close when there is little to send.
   */
  const leastUsed = (address: Address): BrokerConnection => {
    const { connections } = brokerAt(address);
    for (const each of connections) if (!each.isUsable) each.retire();
    let least: BrokerConnection | undefined;
    for (const each of connections) {
      if (each.isUsable && (!least || each.inFlight < least.inFlight)) least = each;
    }
    const most = isSeedAlone(nameOf(address)) ? 1 : perBroker;
    if (least && (least.inFlight === 0 || connections.size >= most)) return least;
    return open(address);
  };

  return {
    send: async (address, call, { withinMs, signal }) => {
      try {
        for (;;) {
          const quietMs = brokers.get(nameOf(address))?.throttle.leftMs() ?? 0;
          if (quietMs <= 0) break;
          await pause(quietMs, undefined, { signal: AbortSignal.any([signal, closing.signal]) });
        }
        signal.throwIfAborted();
        closing.signal.throwIfAborted();
      } catch {
        const cause: unknown = signal.aborted ? signal.reason : closing.signal.reason;
        throw new CallNotSent(`${call.name} was not sent to ${nameOf(address)}`, { cause });
      }
      return leastUsed(address).send(call, { withinMs, signal });
    },
    seeds: () => {
      seeking ??= seedsOf(cluster)
        .then((seeds) => {
          for (const seed of seeds) seedNames.add(nameOf(seed));
          return seeds;
        })
        .finally(() => (seeking = undefined));
      return seeking;
    },
    setAdvertised: (addresses) => {
      advertised = new Set(addresses.map(nameOf));
      for (const name of [...seedNames].filter(isSeedAlone))
        brokers.get(name)?.connections.forEach((each) => each.retire());
    },
    close: () => {
      const error = new kafkajs.KafkaJSConnectionError('the connections are closed');
      closing.abort(error);
      for (const { connections } of brokers.values()) {
        for (const connection of connections) connection.close(error);
      }
    },
  };
}

/**
 * Returns the broker addresses in the settings. Must not run twice at once: kafkajs returns the addresses in turn from one counter, so that
 * each of two callers would get only some of them.
 */
async function seedsOf({
  connectionPoolBuilder,
}: Pick<ReturnType<typeof clusterOf>, 'connectionPoolBuilder'>): Promise<readonly Address[]> {
  const found = new Map<string, Address>();
  for (;;) {
    const { host, port } = await connectionPoolBuilder.build();
    const name = nameOf({ host, port });
    if (found.has(name)) return [...found.values()];
    found.set(name, { host, port });
  }
}

function throttleTime(): ThrottleTime {
  let until = 0;
  return {
    leftMs: () => Math.max(0, until - performance.now()),
    begin: (ms) => (until = Math.max(until, performance.now() + ms)),
  };
}
