// The shared connections to a cluster's brokers.

import { setTimeout as pause } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import { nameOf, CallNotSent } from './protocol.ts';
import type { Address, Call } from './protocol.ts';
import { BrokerConnection, ThrottleTime } from './connection.ts';
import type { CallOptions } from './connection.ts';
import { clusterOf } from './kafkajs-inner.ts';
import type { Cluster } from './kafkajs-inner.ts';

const IDLE_MS = 60_000;

interface BrokerEntry {
  readonly connections: Set<BrokerConnection>;
  readonly throttle: ThrottleTime;
}

/**
 * Shared connections to the brokers of a cluster, opened when they are needed. For an address in the settings that no broker advertises,
 * the limit is one connection.
 */
export class Connections {
  readonly #cluster: Cluster;
  readonly #perBroker: number;
  readonly #idleMs: number;
  readonly #brokers = new Map<string, BrokerEntry>();
  readonly #seedNames = new Set<string>();
  #advertised: ReadonlySet<string> = new Set();
  #seeds: Promise<readonly Address[]> | undefined;
  readonly #closing = new AbortController();

  /**
   * @param perBroker Maximum number of connections to one broker. While an expiring login is replaced there may briefly be one more.
   * @param idleMs Idle time after which a connection is closed, in ms.
   */
  constructor(kafka: Kafka, perBroker: number, idleMs = IDLE_MS) {
    this.#cluster = clusterOf(kafka);
    this.#perBroker = perBroker;
    this.#idleMs = idleMs;
  }

  /**
   * Sends a call to the broker at `address`, over its least used connection or a new one. While the broker throttles this client, calls
   * wait. Even after a timeout or an abort the broker may still execute the request.
   *
   * @throws `CallNotSent`, `CallUnanswered` (cause: kafkajs' error); `KafkaJSProtocolError` if the broker does not support the call.
   */
  async send<T>(address: Address, call: Call<T>, options: CallOptions): Promise<T> {
    const name = nameOf(address);
    const signals = [options.signal, this.#closing.signal];
    for (;;) {
      const aborted = signals.find((signal) => signal.aborted);
      if (aborted) {
        throw new CallNotSent(`${call.name} was not sent to ${name}`, { cause: aborted.reason });
      }
      const throttledMs = this.#brokers.get(name)?.throttle.leftMs ?? 0;
      if (throttledMs <= 0) return this.#leastUsed(address).send(call, options);
      const ended = AbortSignal.any(signals);
      await pause(throttledMs, undefined, { signal: ended }).catch(() => undefined);
    }
  }

  /** Returns the broker addresses in the settings. */
  seeds(): Promise<readonly Address[]> {
    this.#seeds ??= seedsOf(this.#cluster)
      .then((seeds) => {
        for (const seed of seeds) this.#seedNames.add(nameOf(seed));
        return seeds;
      })
      .finally(() => (this.#seeds = undefined));
    return this.#seeds;
  }

  /** Sets the addresses that the cluster's brokers advertise. Connections to other addresses in the settings are closed when idle. */
  setAdvertised(addresses: readonly Address[]): void {
    this.#advertised = new Set(addresses.map(nameOf));
    for (const name of this.#seedNames) {
      const { connections } = this.#brokers.get(name) ?? {};
      if (this.#isSeedAlone(name)) connections?.forEach((each) => each.retire());
    }
  }

  /** Closes all connections; calls in flight are rejected. */
  close(): void {
    const error = new kafkajs.KafkaJSConnectionError(
      'this process has closed its connections to Kafka',
    );
    this.#closing.abort(error);
    for (const { connections } of this.#brokers.values()) {
      for (const connection of connections) connection.close(error);
    }
  }

  #isSeedAlone(name: string): boolean {
    return this.#seedNames.has(name) && !this.#advertised.has(name);
  }

  /**
   * Returns the broker's connection with the fewest calls in flight. If all of them have calls in flight, and one more connection is
   * allowed, opens a new one.
   */
  #leastUsed(address: Address): BrokerConnection {
    const { connections } = this.#brokerAt(address);
    // The oldest one is chosen among equally used connections, so that the newer ones become idle and close.
    let least: BrokerConnection | undefined;
    for (const each of connections) {
      if (!each.isUsable) each.retire();
      else if (!least || each.inFlight < least.inFlight) least = each;
    }
    const most = this.#isSeedAlone(nameOf(address)) ? 1 : this.#perBroker;
    if (least && (least.inFlight === 0 || connections.size >= most)) return least;
    return this.#open(address);
  }

  #open(address: Address): BrokerConnection {
    const { connections, throttle } = this.#brokerAt(address);
    const connection = new BrokerConnection({
      cluster: this.#cluster,
      address,
      idleMs: this.#idleMs,
      throttle,
      onClosed: () => {
        connections.delete(connection);
        // The broker may never return under that address.
        if (connections.size === 0 && throttle.leftMs === 0) this.#brokers.delete(nameOf(address));
      },
      // The other connections may be dead too: idle ones are closed, so that no call has to time out on each of them in turn.
      onNoResponse: () => {
        for (const each of connections) if (each.inFlight === 0) each.retire();
      },
    });
    connections.add(connection);
    return connection;
  }

  #brokerAt(address: Address): BrokerEntry {
    const name = nameOf(address);
    const known = this.#brokers.get(name);
    if (known) return known;
    const broker = { connections: new Set<BrokerConnection>(), throttle: new ThrottleTime() };
    this.#brokers.set(name, broker);
    return broker;
  }
}

/** Returns the broker addresses in the settings. Must not run concurrently. */
async function seedsOf({ connectionPoolBuilder }: Cluster): Promise<readonly Address[]> {
  // kafkajs has no function for that, but each call of its `build` uses the next address, and the first again after the last.
  const found = new Map<string, Address>();
  for (;;) {
    const { host, port } = await connectionPoolBuilder.build();
    const name = nameOf({ host, port });
    if (found.has(name)) return [...found.values()];
    found.set(name, { host, port });
  }
}
