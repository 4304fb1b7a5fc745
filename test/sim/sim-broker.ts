import { CellarstreamError } from '../../src/core/errors.ts';
import { CompactedView } from '../../src/kafka/fetch/compacted-view.ts';
import type { Offsets, StampedMessage, TailMessage, Bounds } from '../../src/kafka/log.ts';
import type { TransactionalLog, Message } from '../../src/sinks/sink.ts';
import { partitionOf } from '../../src/sinks/producer/record-batch.ts';

/** What a partition holds at an offset: a message, or the marker that ends a transaction. */
type Entry =
  | {
      readonly kind: 'message';
      readonly key: string | null;
      readonly value: Buffer | null;
      readonly transaction: Transaction;
      readonly at: number;
    }
  | { readonly kind: 'marker'; readonly transaction: Transaction };

interface Transaction {
  /** Its place in the order in which transactions began. */
  readonly number: number;
  state: 'open' | 'committed' | 'aborted';
  /** What it has written to, and from which offset on. */
  readonly first: Map<Log, number>;
}

interface Log {
  readonly topic: string;
  readonly partition: number;
  readonly entries: Entry[];
  /** The first offset that is still there. */
  start: number;
  /** When entries were taken away, and up to which offset. */
  readonly losses: { readonly at: number; readonly end: number }[];
  /** What compaction has taken. */
  readonly compacted: Set<Entry>;
}

interface Producer {
  epoch: number;
  /** That of who opened it, where that was the same process. */
  before?: number | undefined;
  open: Transaction | undefined;
}

/** What becomes of a commit beside succeeding. */
export type CommitFate =
  | 'done'
  /** Nothing of it was written. */
  | 'refused'
  /** Written and left open, until the next producer of the id ends it. */
  | 'left-open'
  /** Committed, and nobody was told. */
  | 'unknown';

export interface SimMessage {
  readonly key: string | null;
  readonly value: Buffer | null;
  /** When it was written. */
  readonly at: number;
  /** The number of its transaction: they rise with time. */
  readonly transaction: number;
  /** When it was taken away from the topic; Infinity while it is there. */
  readonly lostAt: number;
}

/**
 * Kafka as far as tasks see it: logs with offsets that markers take up too, transactions that are
 * committed, aborted or left open, a last stable offset that an open one holds back, and producers
 * that a newer one of their id fences.
 */
export class SimBroker {
  readonly #logs = new Map<string, Log[]>();
  /** Those of topics that were deleted since, in that order. */
  readonly #gone: Log[] = [];
  readonly #producers = new Map<string, Producer>();
  readonly #partitions: (topic: string) => number;
  #begun = 0;
  /** Names the cluster. */
  clusterId = 'sim';
  /** Times that somebody deleted a topic, or what stood at its beginning. */
  losses = 0;
  /** Times that a producer that was replaced tried to write, or to commit what it had written. */
  refused = 0;

  constructor(partitions: (topic: string) => number) {
    this.#partitions = partitions;
  }

  /** Fences whoever had the id, and aborts what was left open. The epoch to write with. */
  open(transactionalId: string, own?: number): number {
    const producer = this.#producers.get(transactionalId) ?? { epoch: 0, open: undefined };
    this.#producers.set(transactionalId, producer);
    // Who was not told that it was opened asks again for the one before.
    if (own !== undefined && own === producer.before) return producer.epoch;
    if (own !== undefined && own !== producer.epoch) throw outdated();
    producer.before = own;
    producer.epoch += 1;
    if (producer.open) this.#end(producer, 'aborted');
    return producer.epoch;
  }

  /** @throws CellarstreamError `FENCED`, of an epoch that is over. */
  begin(transactionalId: string, epoch: number): void {
    const producer = this.#current(transactionalId, epoch);
    producer.open = { number: ++this.#begun, state: 'open', first: new Map() };
  }

  append(transactionalId: string, epoch: number, messages: readonly Message[], at: number): void {
    const { open } = this.#current(transactionalId, epoch);
    const transaction = open!;
    for (const { topic, key, value } of messages) {
      const log = this.#topic(topic)[partitionOf(key ?? '', this.#partitions(topic))]!;
      if (!transaction.first.has(log)) transaction.first.set(log, log.entries.length);
      log.entries.push({ kind: 'message', key, value, transaction, at });
    }
  }

  /** The ends of what was written, behind the markers. */
  commit(transactionalId: string, epoch: number): Map<string, Map<number, bigint>> {
    return this.#end(this.#current(transactionalId, epoch), 'committed');
  }

  ends(topic: string): Offsets {
    return new Map(
      this.#topic(topic).map((log) => [log.partition, BigInt(this.#stableOffset(log))]),
    );
  }

  bounds(topic: string): Map<number, Bounds> {
    return new Map(
      this.#topic(topic).map((log) => [
        log.partition,
        { low: BigInt(log.start), high: BigInt(this.#stableOffset(log)) },
      ]),
    );
  }

  /** Somebody deletes a topic and makes it anew. */
  makeAnew(topic: string, at: number): void {
    this.losses += 1;
    for (const log of this.#topic(topic)) {
      log.losses.push({ at, end: Infinity });
      this.#gone.push(log);
    }
    this.#logs.delete(topic);
  }

  /** Somebody adds a partition. */
  grow(topic: string): void {
    const logs = this.#topic(topic);
    logs.push(newLog(topic, logs.length));
  }

  /** Somebody deletes what stands at the beginning of a partition, up to a part of it. */
  truncate(topic: string, part: number, at: number): void {
    this.losses += 1;
    const logs = this.#topic(topic);
    const log = logs[this.losses % logs.length]!;
    log.start = Math.max(log.start, Math.floor(part * this.#stableOffset(log)));
    log.losses.push({ at, end: log.start });
  }

  /** A long time passes: of each key the newest message is left, and nothing where that is a tombstone. */
  compact(topic: string): void {
    for (const log of this.#topic(topic)) {
      const newest = new Map<string | null, Entry>();
      for (const entry of log.entries.slice(0, this.#stableOffset(log))) {
        if (entry.kind === 'marker' || entry.transaction.state !== 'committed') continue;
        const older = newest.get(entry.key);
        if (older) log.compacted.add(older);
        newest.set(entry.key, entry);
        if (entry.value === null) log.compacted.add(entry);
      }
    }
  }

  /** Committed messages of one partition between two offsets. */
  slice(
    topic: string,
    partition: number,
    from: number,
    to: number,
  ): (TailMessage & StampedMessage)[] {
    const { entries, start, compacted } = this.#topic(topic)[partition]!;
    if (from < start && from < to)
      throw new CellarstreamError('POSITION', `offset ${from} was deleted`);
    return entries.slice(from, to).flatMap((entry, place) => {
      if (entry.kind === 'marker' || entry.transaction.state !== 'committed') return [];
      if (compacted.has(entry)) return [];
      const { key, value, at } = entry;
      const stands = { partition, offset: String(from + place), timestamp: String(at) };
      return [{ ...stands, key: key === null ? null : Buffer.from(key), value }];
    });
  }

  /** When somebody deleted something of a topic, in that order. */
  lossTimes(topic: string): number[] {
    const all = [...this.#gone.filter((log) => log.topic === topic), ...this.#topic(topic)];
    return [...new Set(all.flatMap(({ losses }) => losses.map(({ at }) => at)))].sort(
      (one, other) => one - other,
    );
  }

  /** Of a partition as it was at a time: what is committed before an offset. */
  before(topic: string, partition: number, end: number, at: number): SimMessage[] {
    const logs = [...this.#gone, ...this.#topic(topic)].filter(
      (log) => log.topic === topic && log.partition === partition,
    );
    const log = logs.find(
      ({ losses }) => !losses.some((loss) => loss.end === Infinity && loss.at <= at),
    );
    const start = Math.max(
      0,
      ...(log?.losses ?? []).filter((loss) => loss.at <= at).map((loss) => loss.end),
    );
    return (log?.entries.slice(start, Math.max(start, end)) ?? []).flatMap((entry) =>
      entry.kind === 'message' && entry.transaction.state === 'committed'
        ? [{ ...entry, transaction: entry.transaction.number, lostAt: Infinity }]
        : [],
    );
  }

  /** All that a `read_committed` reader has found, partition by partition, with what is gone since. */
  read(topic: string): SimMessage[] {
    const gone = this.#gone.filter((log) => log.topic === topic);
    return [...gone, ...this.#topic(topic)].flatMap((log) => {
      const found: SimMessage[] = [];
      for (const [offset, entry] of log.entries.slice(0, this.#stableOffset(log)).entries()) {
        if (entry.kind === 'marker' || entry.transaction.state !== 'committed') continue;
        const { key, value, at, transaction } = entry;
        const lostAt = log.losses.find(({ end }) => offset < end)?.at ?? Infinity;
        found.push({ key, value, at, transaction: transaction.number, lostAt });
      }
      return found;
    });
  }

  #end(producer: Producer, state: 'committed' | 'aborted'): Map<string, Map<number, bigint>> {
    const transaction = producer.open!;
    producer.open = undefined;
    transaction.state = state;
    const ends = new Map<string, Map<number, bigint>>();
    for (const { topic, partition, entries } of transaction.first.keys()) {
      entries.push({ kind: 'marker', transaction });
      const ofTopic = ends.get(topic) ?? new Map<number, bigint>();
      ends.set(topic, ofTopic.set(partition, BigInt(entries.length)));
    }
    return ends;
  }

  #current(transactionalId: string, epoch: number): Producer {
    const producer = this.#producers.get(transactionalId)!;
    if (producer.epoch !== epoch) {
      this.refused += 1;
      throw outdated();
    }
    return producer;
  }

  /** Up to the first message of a transaction that is open. */
  #stableOffset(log: Log): number {
    let offset = log.entries.length;
    for (const { open } of this.#producers.values()) {
      offset = Math.min(offset, open?.first.get(log) ?? offset);
    }
    return offset;
  }

  #topic(topic: string): Log[] {
    const known = this.#logs.get(topic);
    if (known) return known;
    const length = this.#partitions(topic);
    const logs = Array.from({ length }, (_, partition) => newLog(topic, partition));
    this.#logs.set(topic, logs);
    return logs;
  }
}

function newLog(topic: string, partition: number): Log {
  return { topic, partition, entries: [], start: 0, losses: [], compacted: new Set() };
}

/** How a process reaches the broker: each step takes time, may fail, and a dead process sees none. */
export interface BrokerLine {
  /** Waits as long as a step takes; never resolves for a process that is gone. */
  readonly step: (what: string) => Promise<void>;
  /** What becomes of the commit that is about to be made. */
  readonly fate: () => CommitFate;
  readonly now: () => number;
}

/** The broker as one process sees it. */
export function brokerOf(broker: SimBroker, { step, fate, now }: BrokerLine): TransactionalLog {
  const bounds = async (topic: string) => {
    await step('bounds');
    return broker.bounds(topic);
  };
  const read = async (
    topic: string,
    partition: number,
    range: Bounds,
    onMessages: (messages: readonly (TailMessage & StampedMessage)[]) => unknown,
  ) => {
    const end = Number(range.high);
    let at = Number(range.low);
    while (at < end) {
      await step('read');
      const next = Math.min(end, at + 10);
      const { low, high } = broker.bounds(topic).get(partition) ?? { low: 0n, high: 0n };
      if (at < low || end > high) throw changed(topic);
      await onMessages(broker.slice(topic, partition, at, next));
      at = next;
    }
  };
  /** What this process has read, as all its tasks know it. */
  const known = new Map<string, CompactedView<StampedMessage>>();
  const newestOf = (topic: string) => {
    const found =
      known.get(topic) ??
      new CompactedView<StampedMessage>(
        (range, onMessages) => read(topic, 0, range, onMessages),
        now,
      );
    known.set(topic, found);
    return found;
  };
  return {
    open: async (transactionalId, own) => {
      await step('open');
      const epoch = broker.open(transactionalId, own?.epoch);
      await step('opened');
      let used = false;
      return {
        producer: { producerId: 1n, epoch },
        commit: async (messages) => {
          if (used) throw new Error('a sink was used after a commit that failed');
          const outcome = fate();
          await step('begin');
          try {
            if (outcome === 'refused') throw lost();
            broker.begin(transactionalId, epoch);
            const half = Math.ceil(messages.length / 2);
            broker.append(transactionalId, epoch, messages.slice(0, half), now());
            await step('half written');
            broker.append(transactionalId, epoch, messages.slice(half), now());
            await step('written');
            if (outcome === 'left-open') throw lost();
            const ends = broker.commit(transactionalId, epoch);
            await step('committed');
            if (outcome === 'unknown') throw lost();
            return ends;
          } catch (error) {
            used = true;
            throw error;
          }
        },
        awaitVisible: () => step('visible'),
        bounds,
        close: () => step('close'),
      };
    },
    clusterId: async () => {
      await step('cluster');
      return broker.clusterId;
    },
    ends: async (topic) => {
      await step('ends');
      return broker.ends(topic);
    },
    bounds,
    readTail: async ({ topic, from, to, onMessages }) => {
      for (const [partition, end] of to) {
        const range = { low: from.get(partition) ?? 0n, high: end };
        await read(topic, partition, range, onMessages);
      }
    },
    compacted: (topic, boundsOf) => newestOf(topic).asOf(boundsOf),
  };
}

function outdated(): CellarstreamError {
  return new CellarstreamError('FENCED', 'an outdated producer', {
    context: { epoch: true },
  });
}

function changed(topic: string): CellarstreamError {
  return new CellarstreamError('KAFKA_UNREACHABLE', `${topic} was changed while it was read back`);
}

function lost(): CellarstreamError {
  return new CellarstreamError('COMMIT_FAILED', 'the connection was lost');
}
