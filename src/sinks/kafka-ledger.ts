import type { Kafka } from 'kafkajs';
import { lastValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../errors.ts';
import type { Broker } from './broker.ts';
import { isEpochError } from './kafka-error.ts';
import { readBatches } from './read-batches.ts';
import type { LogMessage } from './record-batches.ts';
import type { FencedSink } from './sink.ts';
import { CLAIM_GRACE_MS, fenced, leftUndecided } from './tenure.ts';

/** An account's entries of the topic of ledgers. */
export interface AccountLog {
  /**
   * Takes the place of whoever wrote to it, appends an entry, and gives all that stand before it: committed or not, as
   * somebody may have relied on what was never answered.
   */
  readonly takeOver: (text: string) => Promise<TakenOver>;
  /**
   * Resolves when the entry is committed. After a failure with a new producer of its own, unless somebody else has
   * appended anything since.
   *
   * @throws CellarstreamError `FENCED`; `KAFKA_UNREACHABLE`, `COMMIT_FAILED`, ...
   */
  readonly append: (text: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface TakenOver {
  readonly entries: readonly LedgerEntry[];
  /** When one's own was there, at the latest: ms, on the scheduler's clock. */
  readonly at: number;
}

export interface LedgerEntry {
  readonly text: string;
  /** For how long it had been there, at the least, ms. */
  readonly ageMs: number;
}

export interface AccountLogOptions {
  readonly kafka: Kafka;
  readonly broker: Pick<Broker, 'open' | 'bounds'>;
  readonly topic: string;
  readonly account: string;
  readonly transactionalId: string;
  readonly scheduler: SchedulerLike;
  /** Whether an entry is this process's own. */
  readonly isMine: (text: string) => boolean;
}

/** A broker's clock may have been set by so much between two messages, ms. */
const CLOCK_MARGIN_MS = 100;

/**
 * Each account has a transactional id of its own, so that a successor ends whatever its predecessor had under way. Entries
 * are read to the end of the log and not to its last stable offset, at which another account's open transaction would hold
 * them back.
 */
export function accountLog(options: AccountLogOptions): AccountLog {
  const { kafka, broker, topic, account, transactionalId, scheduler, isMine } = options;
  /** The newest that was opened; and whether it can still be used. */
  let sink: FencedSink | undefined;
  let isWhole = false;
  let queue: Promise<unknown> = Promise.resolve();

  const commit = async (to: FencedSink, text: string): Promise<bigint> => {
    try {
      const message = { topic, key: account, value: Buffer.from(text) };
      const ends = await leftUndecided(() => to.commit([message]));
      return ends.get(topic)!.get(0)!;
    } catch (error) {
      isWhole = false;
      await to.close().catch(() => undefined); // what came before it says more
      throw error;
    }
  };
  const open = async (own?: FencedSink): Promise<FencedSink> => {
    sink = await broker.open(transactionalId, own?.producer);
    isWhole = true;
    return sink;
  };
  /** The account's, before an offset. */
  const entriesBefore = async (
    end: bigint,
    from: Pick<Broker, 'bounds'>,
  ): Promise<LogMessage[]> => {
    const low = (await from.bounds(topic)).get(0)?.low ?? 0n;
    const found: LogMessage[] = [];
    const reading = { kafka, topic, from: new Map([[0, low]]), ends: new Map([[0, end]]) };
    const batches$ = readBatches(
      { ...reading, isolation: 'uncommitted', isPatient: false },
      ({ messages }) => {
        found.push(...messages.filter(({ key, value }) => value && key?.toString() === account));
        return [];
      },
    );
    await lastValueFrom(batches$, { defaultValue: undefined });
    return found;
  };
  /** After a lost producer. Its epoch is over, too, when a transaction ran out of time: brokers don't tell, the entries do. */
  const reopened = async (): Promise<FencedSink> => {
    try {
      return await open(sink);
    } catch (error) {
      if (!sink || !isEpochError(error)) throw error;
      await lastValueFrom(timer(CLAIM_GRACE_MS, scheduler));
      const end = (await broker.bounds(topic)).get(0)?.high ?? 0n;
      const newest = (await entriesBefore(end, broker)).at(-1);
      if (newest && !isMine(String(newest.value))) throw fenced(error);
      return open();
    }
  };
  /** One that is refused was overtaken by another process that is starting: it is left to that one. */
  const claimed = async (text: string) => {
    try {
      const own = await open(isWhole ? undefined : sink);
      return { own, end: await commit(own, text) };
    } catch (error) {
      throw isEpochError(error) ? fenced(error) : error;
    }
  };
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = queue.then(work, work);
    queue = done.catch(() => undefined); // its caller has it
    return done;
  };

  return {
    takeOver: (text) =>
      inTurn(async () => {
        const { own, end } = await claimed(text);
        const at = scheduler.now();
        const all = await entriesBefore(end, own);
        const claim = all.findLast(({ value }) => String(value) === text);
        if (!claim) throw unread(topic);
        const before = all.slice(0, all.indexOf(claim));
        const entries = before.map((one) => ({
          text: String(one.value),
          ageMs: ageMs(one, claim),
        }));
        return { entries, at };
      }),
    append: (text) =>
      inTurn(async () => {
        await commit(isWhole && sink ? sink : await reopened(), text);
      }),
    close: async () => {
      isWhole = false;
      await sink?.close();
    },
  };
}

/**
 * For how long an entry had been there when the claim was written, at the least, ms: by the clock of the broker that wrote
 * both. Where there were two, or it was not asked, nothing is known.
 */
export function ageMs(entry: Stamped, claim: Stamped): number {
  const isComparable =
    entry.isAppendTime && claim.isAppendTime && entry.leaderEpoch === claim.leaderEpoch;
  if (!isComparable) return 0;
  return Math.max(0, Number(claim.timestamp) - Number(entry.timestamp) - CLOCK_MARGIN_MS);
}

type Stamped = Pick<LogMessage, 'timestamp' | 'leaderEpoch' | 'isAppendTime'>;

/** As when the topic is deleted meanwhile. */
function unread(topic: string): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `${topic} lacks what was just written to it: it is taken over again`,
    { context: { topic } },
  );
}
