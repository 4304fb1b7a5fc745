import { randomUUID } from 'node:crypto';
import type { Batch, Consumer, Kafka, KafkaMessage } from 'kafkajs';
import { ReplaySubject } from 'rxjs';
import { isRetryable } from '../errors.ts';
import type { Offsets } from './broker.ts';
import { NOWHERE, partitionPlaces } from './partition-places.ts';
import type { Places } from './partition-places.ts';
import { leastAnswer, quietFetches } from './quiet-fetches.ts';
import { readAsMember } from './reader-member.ts';
import { deletedBefore, refuseLoss } from './refuse-loss.ts';
import { withAdmin } from './with-admin.ts';

/** What of a partition has been read, in one go. */
export interface PartitionBatch {
  readonly partition: number;
  /** Committed ones, in order; none comes twice. */
  readonly messages: readonly KafkaMessage[];
  /** The offset to go on at: behind markers and gaps too. */
  readonly next: bigint;
}

export interface ReaderOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  /** By partition, the first offset to read. Every partition is here. */
  readonly from: Offsets;
  /** By partition, the offset to end before: no further than it can be read now. */
  readonly ends: Offsets;
  /** Ends a partition sooner, before its first message of this time or later, ms since 1970. */
  readonly before?: number;
  /** Goes on behind the ends for ever, with partitions that are added as well. Default false. */
  readonly follow?: boolean;
  /** Whether a Kafka that goes away is waited for in silence, or is an error. Default it is waited for. */
  readonly isPatient?: boolean;
  /** Takes what was read; it may not wait, but call {@link TopicReader.pause}. */
  readonly onBatch: (batch: PartitionBatch) => void;
  /** Called once, when `onBatch` has had all up to the ends. */
  readonly onCaughtUp?: () => void;
}

export interface TopicReader {
  /** Resolves at the ends, unless it follows; rejects when it can't go on. */
  readonly done: Promise<void>;
  /** Reads no more of a partition until it is resumed. */
  pause(partition: number): void;
  resume(partition: number): void;
  /** Resolves when nothing is left of it here and at the broker. */
  close(): Promise<void>;
}

/** Groups of readers are called this and an id: what ACLs have to allow. */
export const READER_GROUP_PREFIX = 'cellarstream-tail-';

/** How long a broker waits for something new, ms: no less is a fetch that found nothing. */
const MOST_WAIT_MS = 250;

/**
 * Reads a topic from one set of offsets to another, `read_committed`.
 *
 * kafkajs can't read without a group: this one has a name of its own, commits nothing, and is
 * deleted in the end. Whenever it joins anew, kafkajs has forgotten where it was: it is told.
 */
export function openReader(options: ReaderOptions): TopicReader {
  const { kafka, topic, from, ends, before = Infinity, follow = false } = options;
  const { onBatch, onCaughtUp } = options;
  const next = new Map(from);
  const paused = new Set<number>();
  const behind = new Set(unread(from, ends).keys());
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const done = new Promise<void>((whenDone, whenFailed) => {
    resolve = whenDone;
    reject = whenFailed;
  });
  let hasFailed = false;
  /** At once: nothing that is still on its way may count as read. */
  const fail = (error: unknown) => {
    hasFailed = true;
    reject(error);
  };
  done.catch(() => undefined); // also where nobody waits for it any more

  const groupId = `${READER_GROUP_PREFIX}${randomUUID()}`;
  /** The one that has joined the group; there is none while Kafka is away. */
  let consumer: Consumer | undefined;

  const seek = (partition: number) => {
    const offset = next.get(partition)!.toString();
    consumer?.seek({ topic, partition, offset });
  };
  const isWanted = (partition: number) => follow || behind.has(partition);
  const pauseOrResume = (partition: number) => {
    const where = [{ topic, partitions: [partition] }];
    if (paused.has(partition) || !isWanted(partition)) consumer?.pause(where);
    else consumer?.resume(where);
  };
  const moveTo = (partition: number, offset: bigint) => {
    if (offset > (next.get(partition) ?? 0n)) next.set(partition, offset);
    quiet.reset();
    reach(partition);
  };
  const reach = (partition: number) => {
    if (!behind.has(partition) || next.get(partition)! < ends.get(partition)!) return;
    behind.delete(partition);
    if (!follow) pauseOrResume(partition);
    if (behind.size === 0) finish();
  };
  const finish = () => {
    onCaughtUp?.();
    if (!follow) resolve();
  };
  const take = (batch: Batch) => {
    const { partition } = batch;
    if (!next.has(partition) && follow) next.set(partition, 0n); // was added meanwhile
    if (!isWanted(partition)) return;
    const at = next.get(partition)!;
    refuseLoss(topic, batch, at);
    const end = follow ? undefined : ends.get(partition);
    let after = BigInt(batch.lastOffset()) + 1n;
    let messages = batch.messages.filter(
      // After a fault some come again.
      ({ offset }) => BigInt(offset) >= at && (end === undefined || BigInt(offset) < end),
    );
    const late = messages.findIndex(({ timestamp }) => Number(timestamp) >= before);
    if (late >= 0 && end !== undefined) {
      messages = messages.slice(0, late);
      after = end; // what is between is not wanted
    }
    if (after > at) onBatch({ partition, messages, next: after });
    moveTo(partition, after);
  };

  const quiet = quietFetches(MOST_WAIT_MS, leastAnswer(topic));
  /** Where the partitions are, as it was asked when answers became suspicious. */
  let places: Places | 'being asked' | undefined;
  const lookAround = () => {
    places = 'being asked';
    partitionPlaces(kafka, topic).then(
      (found) => (places = found),
      (error: unknown) => {
        places = undefined;
        if (!isRetryable(error)) fail(error);
      },
    );
  };
  /**
   * Goes on where fetches bring nothing although the end is behind them: where the broker that answered
   * is the one that has the partition, and has all of it up to the end.
   */
  const passGaps = (found: Places) => {
    for (const partition of [...behind].filter((each) => !paused.has(each))) {
      const at = next.get(partition)!;
      const end = ends.get(partition)!;
      const { leader, low, high } = found.get(partition) ?? NOWHERE;
      const verdict = quiet.verdict(leader);
      if (verdict === 'open' || high < end) continue;
      if (low > at) throw deletedBefore(topic, partition, at, low);
      const offset = verdict === 'end' ? end : at + 1n;
      onBatch({ partition, messages: [], next: offset });
      next.set(partition, offset);
      seek(partition);
      reach(partition);
    }
    quiet.reset();
  };
  const onAnswered = (broker: string, tookMs: number, bytes: number) => {
    if (hasFailed || [...behind].every((partition) => paused.has(partition))) return;
    quiet.answered(broker, tookMs, bytes);
    if (places === 'being asked') return;
    if (quiet.verdict(broker) === 'open') {
      places = undefined;
    } else if (!places) {
      lookAround(); // the answer after that counts
    } else {
      try {
        passGaps(places);
      } catch (error) {
        fail(error);
      }
      places = undefined;
    }
  };

  const leave$ = new ReplaySubject<void>(1);
  const isNeeded = follow || behind.size > 0;
  const reading = !isNeeded
    ? Promise.resolve()
    : readAsMember({
        kafka,
        topic,
        groupId,
        mostWaitMs: MOST_WAIT_MS,
        isPatient: options.isPatient ?? true,
        leave$,
        onJoin: (joined) => {
          consumer = joined;
          quiet.reset();
          for (const partition of next.keys()) {
            seek(partition);
            pauseOrResume(partition);
          }
        },
        onLeft: () => (consumer = undefined),
        onBatch: (batch) => {
          if (hasFailed) return;
          try {
            take(batch);
          } catch (error) {
            fail(error);
            throw error;
          }
        },
        onPassed: (partition, lastOffset) => {
          if (hasFailed) return; // kafkajs takes what was refused for done
          const offset = BigInt(lastOffset) + 1n;
          if (!isWanted(partition) || offset <= (next.get(partition) ?? 0n)) return;
          onBatch({ partition, messages: [], next: offset });
          moveTo(partition, offset);
        },
        onAnswered,
      });
  reading.catch(fail);
  if (behind.size === 0) finish();

  let closed: Promise<void> | undefined;
  const close = async () => {
    if (!isNeeded) return;
    leave$.next();
    await reading.catch(() => undefined); // `done` has it
    // Where it fails: an empty group without offsets is dropped by the broker in time.
    await withAdmin(kafka, (admin) => admin.deleteGroups([groupId])).catch(() => undefined);
  };
  return {
    done,
    pause: (partition) => {
      paused.add(partition);
      pauseOrResume(partition);
    },
    resume: (partition) => {
      paused.delete(partition);
      quiet.reset();
      pauseOrResume(partition);
    },
    close: () => (closed ??= close()),
  };
}

/** The ends of those partitions that have something before them. */
export function unread(from: Offsets, ends: Offsets): Map<number, bigint> {
  return new Map([...ends].filter(([partition, end]) => end > from.get(partition)!));
}
