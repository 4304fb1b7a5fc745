import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import kafkajs from 'kafkajs';
import type { KafkaConfig } from 'kafkajs';
import type { Fault, Received } from './scripted-cluster/fault.ts';
import { ScriptedLog } from './scripted-cluster/log.ts';
import type { LoggedRecord } from './scripted-cluster/log.ts';
import { readRequest, sayThrottled, writeAnswer, writeBytes } from './scripted-cluster/protocol.ts';
import type { Api, BrokerAddress } from './scripted-cluster/protocol.ts';
import { answerTo } from './scripted-cluster/serve.ts';
import type { KnownPartition } from './scripted-cluster/serve.ts';
import { Transactions } from './scripted-cluster/transactions.ts';
import type { Transaction } from './scripted-cluster/transactions.ts';

export interface ScriptedClusterOptions {
  /** Default 1. */
  readonly brokers?: number;
  /** By topic, how many partitions; leaders take turns. */
  readonly topics: Readonly<Record<string, number>>;
  /** How long a fetch that finds nothing new waits at most, ms. Default as long as it asks for. */
  readonly maxWaitMs?: number;
  /** How long a login is good for, ms; without it nobody is asked for one. */
  readonly loginMs?: number;
}

/**
 * A Kafka of one to three brokers on loopback, as a transactional producer sees it: with a small model of its
 * coordinator and logs, and with faults for chosen requests.
 */
export class ScriptedCluster {
  readonly requests: Received[] = [];
  /** What no server would have expected. */
  readonly errors: unknown[] = [];
  readonly addresses: BrokerAddress[] = [];
  readonly partitions: Map<string, number>;
  readonly loginMs: number;
  coordinator = 0;
  readonly transactions = new Transactions((ended, own) => {
    for (const partition of ended.partitions) this.#log(partition).mark(ended, own);
    this.#wrote();
  });
  /** The configuration of every topic, as DescribeConfigs returns it. */
  settings: Readonly<Record<string, string>> = { 'cleanup.policy': 'compact' };
  readonly #waiting = new Set<() => void>();
  readonly #leaders = new Map<string, number>();
  readonly #epochs = new Map<string, number>();
  /** What those that stand still know, by broker and partition. */
  readonly #still = new Map<number, ReadonlyMap<string, KnownPartition>>();
  readonly #logs = new Map<string, ScriptedLog>();
  readonly #faults: (Fault & { left: number })[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #servers: ReturnType<typeof createServer>[] = [];
  readonly #maxWaitMs: number;
  #connections = 0;

  private constructor({ topics, loginMs = 0, maxWaitMs = Infinity }: ScriptedClusterOptions) {
    this.#maxWaitMs = maxWaitMs;
    this.partitions = new Map(Object.entries(topics));
    this.loginMs = loginMs;
  }

  static async start(options: ScriptedClusterOptions): Promise<ScriptedCluster> {
    const cluster = new ScriptedCluster(options);
    for (let id = 0; id < (options.brokers ?? 1); id++) {
      const server = createServer((socket) => cluster.#serve(id, socket)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      cluster.#servers.push(server);
      cluster.addresses.push({ id, host: '127.0.0.1', port });
    }
    return cluster;
  }

  get brokers(): string[] {
    return this.addresses.map(({ host, port }) => `${host}:${port}`);
  }

  /** How many connections are open. */
  get open(): number {
    return this.#sockets.size;
  }

  fault(fault: Fault): void {
    this.#faults.push({ ...fault, left: fault.times ?? 1 });
  }

  of<A extends Api>(api: A): Received<A>[] {
    return this.requests.filter((each): each is Received<A> => each.api === api);
  }

  /** -1 is nobody. */
  leader(topic: string, partition: number): number {
    return this.#leaders.get(`${topic} ${partition}`) ?? partition % this.addresses.length;
  }

  lead(topic: string, partition: number, broker: number): void {
    const name = `${topic} ${partition}`;
    this.#leaders.set(name, broker);
    this.#epochs.set(name, (this.#epochs.get(name) ?? 0) + 1);
  }

  /** From now on a broker hears of nothing, and takes itself for what it is now. */
  standStill(broker: number): void {
    const known = [...this.partitions].flatMap(([topic, count]) =>
      Array.from(
        { length: count },
        (_, partition) => [`${topic} ${partition}`, this.known(-1, topic, partition)] as const,
      ),
    );
    this.#still.set(broker, new Map(known));
  }

  /** It hears of all. */
  wakeUp(broker: number): void {
    this.#still.delete(broker);
  }

  known(broker: number, topic: string, partition: number): KnownPartition {
    const name = `${topic} ${partition}`;
    const then = this.#still.get(broker)?.get(name);
    if (then) return then;
    const leader = this.leader(topic, partition);
    const { end, stableEnd } = this.#log(name);
    return { leader, leaderEpoch: this.#epochs.get(name) ?? 0, end, stableEnd };
  }

  /** As a `read_committed` consumer has them. */
  committed(topic: string, partition: number): LoggedRecord[] {
    return this.#log(`${topic} ${partition}`).committed();
  }

  /** All that was ever written. */
  written(topic: string, partition: number): LoggedRecord[] {
    return this.#log(`${topic} ${partition}`).written();
  }

  end(topic: string, partition: number): number {
    return this.#log(`${topic} ${partition}`).end;
  }

  async append(
    topic: string,
    partition: number,
    batch: Buffer,
    transaction: Transaction | undefined,
  ) {
    const appended = await this.#log(`${topic} ${partition}`).append(batch, transaction);
    this.#wrote();
    return appended;
  }

  /** Appends one batch without a transaction. */
  put(topic: string, partition: number, ...messages: Parameters<ScriptedLog['put']>[0]): void {
    this.#log(`${topic} ${partition}`).put(messages);
    this.#wrote();
  }

  fetch(topic: string, partition: number, ...range: Parameters<ScriptedLog['fetch']>) {
    return this.#log(`${topic} ${partition}`).fetch(...range);
  }

  nextWrite(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(end, Math.min(withinMs, this.#maxWaitMs));
      this.#waiting.add(end);
    });
  }

  /** Closes all connections that are open. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.hangUp();
    this.#wrote();
    await Promise.all(this.#servers.map((server) => once(server.close(), 'close')));
  }

  #wrote(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  #log(name: string): ScriptedLog {
    let log = this.#logs.get(name);
    if (!log) this.#logs.set(name, (log = new ScriptedLog()));
    return log;
  }

  #serve(broker: number, socket: Socket): void {
    const connection = this.#connections++;
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket)).on('error', () => socket.destroy());
    let bytes = Buffer.alloc(0);
    let turn: Promise<unknown> = Promise.resolve();
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 4 && bytes.length >= 4 + bytes.readInt32BE(0)) {
        const end = 4 + bytes.readInt32BE(0);
        const frame = bytes.subarray(4, end);
        bytes = bytes.subarray(end);
        turn = turn
          .then(() => this.#receive({ ...readRequest(frame), broker, connection }, socket))
          .catch((error: unknown) => {
            this.errors.push(error);
            socket.destroy();
          });
      }
    });
  }

  async #receive(received: Received, socket: Socket): Promise<void> {
    this.requests.push(received);
    const fault = this.#faults.find(
      ({ api, left, when = () => true }) => api === received.api && left > 0 && when(received),
    );
    if (fault) fault.left -= 1;
    await fault?.first?.();
    const { deed: chosen = 'do as asked' } = fault ?? {};
    const deed = typeof chosen === 'function' ? await chosen(received) : chosen;
    if (deed === 'hang up before') socket.destroy();
    if (deed === 'lose request' || deed === 'hang up before') return;
    if (typeof deed === 'object' && 'bytes' in deed) {
      socket.write(writeBytes(received, deed.bytes));
      return;
    }
    const isScripted = typeof deed === 'object' && 'answer' in deed;
    const answer = isScripted ? deed.answer : await answerTo(this, received, deed);
    if (deed === 'hang up after') socket.destroy();
    if (deed === 'lose answer' || deed === 'hang up after') return;
    const bytes = writeAnswer(received, answer);
    const throttleMs = fault?.throttleMs ?? 0;
    if (!socket.destroyed) socket.write(throttleMs > 0 ? sayThrottled(bytes, throttleMs) : bytes);
  }
}

/** A client of the cluster that tries nothing twice, unless `config` says otherwise. */
export function kafkaOf(cluster: ScriptedCluster, config: Partial<KafkaConfig> = {}) {
  return new kafkajs.Kafka({
    brokers: cluster.brokers,
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { retries: 0 },
    ...config,
  });
}
