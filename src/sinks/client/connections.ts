// The shared connections to a cluster's brokers.

import { setTimeout as pause } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { nameOf, NotSent } from './protocol.ts';
import type { Address, Call } from './protocol.ts';
import { openConnection } from './connection.ts';
import type { AskOptions, BrokerConnection, QuietTime } from './connection.ts';
import { clusterOf } from './kafkajs-inner.ts';

/** The connections to a cluster's brokers that many share: a few to each broker, made when they are needed. */
export interface Connections {
  /**
   * Sends a call over the connection to this broker that has the fewest calls in flight. Calls are queued without a limit: each caller has only a few
   * in flight. While the broker throttles this client, calls wait.
   *
   * After a timeout or an abort the broker may still carry out the request, also later.
   *
   * @throws NotSent or NoAnswer, with kafkajs' error as their cause.
   */
  ask<T>(address: Address, call: Call<T>, options: AskOptions): Promise<T>;
  /** The brokers that the settings name. */
  seeds(): Promise<readonly Address[]>;
  /**
   * The addresses that the cluster's brokers advertise. A broker that the settings name otherwise is known under two addresses: from now on the
   * advertised one is used, and the connection to the other is closed.
   */
  advertised(addresses: readonly Address[]): void;
  /** Closes all connections; calls in flight are rejected. */
  close(): void;
}

export interface ConnectionsOptions {
  /** Most connections to one broker. A login that runs out may make it one more for a moment. */
  readonly perBroker: number;
  /** Idle time after which a connection is closed, in ms. Default 60,000. */
  readonly idleMs?: number;
}

const IDLE_MS = 60_000;
const METADATA_MAX_AGE_MS = 300_000;

/** Open connections to one broker, and until when it throttles this client. */
interface AtBroker {
  readonly connections: Set<BrokerConnection>;
  readonly quiet: QuietTime;
}

/** Connects to nothing yet. */
export function connectionsOf(kafka: Kafka, options: ConnectionsOptions): Connections {
  const { perBroker, idleMs = IDLE_MS } = options;
  const cluster = clusterOf(kafka, {
    metadataMaxAge: METADATA_MAX_AGE_MS, // never asked for: metadata are read by ourselves
    allowAutoTopicCreation: false,
  });
  const brokers = new Map<string, AtBroker>();
  const seedNames = new Set<string>();
  /** Names of the addresses that brokers advertise; none until that is known. */
  let advertised: ReadonlySet<string> = new Set();
  /** A seed that no broker is known to advertise: one connection to it serves to find the brokers. */
  const isSeedAlone = (name: string) => seedNames.has(name) && !advertised.has(name);
  const closing = new AbortController();
  let seeking: Promise<readonly Address[]> | undefined;

  const brokerAt = (address: Address): AtBroker => {
    const name = nameOf(address);
    const found = brokers.get(name) ?? { connections: new Set(), quiet: quietTime() };
    brokers.set(name, found);
    return found;
  };
  const open = (address: Address): BrokerConnection => {
    const { connections, quiet } = brokerAt(address);
    const onClosed = () => {
      connections.delete(connection);
      // It may never come back under that name.
      if (connections.size === 0 && quiet.leftMs() === 0) brokers.delete(nameOf(address));
    };
    // The other connections may be dead, too: idle ones are closed, so that no call has to time out on each of them in turn.
    const onNoAnswer = () => {
      for (const each of connections) if (each.underWay === 0) each.retire();
    };
    const connection = openConnection({ cluster, address, quiet, idleMs, onClosed, onNoAnswer });
    connections.add(connection);
    return connection;
  };
  /** The connection with the fewest calls in flight; of several the oldest, so that at rest the others become idle and close. */
  const leastUsed = (address: Address): BrokerConnection => {
    const { connections } = brokerAt(address);
    for (const each of connections) if (!each.isFit) each.retire();
    let least: BrokerConnection | undefined;
    for (const each of connections) {
      if (each.isFit && (!least || each.underWay < least.underWay)) least = each;
    }
    const most = isSeedAlone(nameOf(address)) ? 1 : perBroker;
    if (least && (least.underWay === 0 || connections.size >= most)) return least;
    return open(address);
  };

  return {
    ask: async (address, call, { withinMs, signal }) => {
      try {
        for (;;) {
          const quietMs = brokers.get(nameOf(address))?.quiet.leftMs() ?? 0;
          if (quietMs <= 0) break;
          await pause(quietMs, undefined, { signal: AbortSignal.any([signal, closing.signal]) });
        }
        signal.throwIfAborted();
        closing.signal.throwIfAborted();
      } catch {
        const cause: unknown = signal.aborted ? signal.reason : closing.signal.reason;
        throw new NotSent(`${call.name} was not sent to ${nameOf(address)}`, { cause });
      }
      return leastUsed(address).ask(call, { withinMs, signal });
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
    advertised: (addresses) => {
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

/** The addresses of the settings. kafkajs gives them in turn, from one counter: two callers at once would get half of them each. */
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

function quietTime(): QuietTime {
  let until = 0;
  return {
    leftMs: () => Math.max(0, until - performance.now()),
    begin: (ms) => (until = Math.max(until, performance.now() + ms)),
  };
}
