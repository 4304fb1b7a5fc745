// The topic of ledgers for whoever runs an account.

import { lastValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { TransactionalLog, Bounds, FencedSink, Message } from '../sink.ts';
import { isEpochError } from '../client/kafka-error.ts';
import { claimKey, entryOf, guestsAt, isOfAccount, isOwn, recentAt } from './ledger-entries.ts';
import type { LedgerEntry } from './ledger-entries.ts';
import type { NewestByKey } from '../newest-by-key.ts';
import type { LogMessage } from '../fetch/record-batches.ts';
import { CLAIM_GRACE_MS, fenced, leftUndecided } from '../producer/fencing.ts';

/** An account's entries of the topic of ledgers. */
export interface AccountLog {
  /**
   * Takes the place of whoever wrote to it, appends an entry, and gives all that stand before it: committed or not, as
   * somebody may have relied on what was never answered. `beside` is committed with it, as with {@link append}.
   */
  readonly takeOver: (text: string, beside?: readonly Message[]) => Promise<TakenOver>;
  /**
   * Resolves when the entry is committed. After a failure with a new producer of its own, unless somebody else has
   * appended anything since.
   *
   * @throws CellarstreamError `FENCED`; `KAFKA_UNREACHABLE`, `COMMIT_FAILED`, ...
   */
  readonly append: (text: string, beside?: readonly Message[]) => Promise<void>;
  /** What guests have declared between what was read last and what was appended last. */
  readonly guests: () => Promise<Guests>;
  /** Resolves when nothing of it is under way: a late claim would fence whoever comes after. */
  readonly close: () => Promise<void>;
}

/** Entries as of one's own. */
export interface Guests {
  /** The newest of each guest; as it takes over, of each account with the same API key as well. */
  readonly guests: readonly LedgerEntry[];
  /** When they were read: ms, on the scheduler's clock. Of those that stand behind one's own the age is 0. */
  readonly at: number;
}

export interface TakenOver extends Guests {
  /** The newest declaration and the newest claim before one's own, as far as there are any: as of `claimedAt`. */
  readonly entries: readonly LedgerEntry[];
  /** When one's own was there, at the latest: ms, on the scheduler's clock. */
  readonly claimedAt: number;
}

export interface AccountLogOptions {
  readonly log: Pick<TransactionalLog, 'open' | 'bounds'>;
  readonly topic: string;
  /** Its entries, read to the end of the log. */
  readonly known: NewestByKey<LogMessage>;
  readonly account: string;
  readonly transactionalId: string;
  readonly scheduler: SchedulerLike;
  /** Makes the topic where it is gone. */
  readonly remake: () => Promise<unknown>;
  /** Whether an entry is this process's own. */
  readonly isMine: (text: string) => boolean;
  /** Whether an entry tells of requests with this account's API key. Default none of another account does. */
  readonly isOfKey?: (text: string) => boolean;
}

/**
 * Each account has a transactional id of its own, so that a successor ends whatever its predecessor had under way. Entries
 * are read to the end of the log and not to its last stable offset, at which another account's open transaction would hold
 * them back.
 */
export function accountLog(options: AccountLogOptions): AccountLog {
  const { log, topic, known, account, transactionalId, scheduler, remake, isMine } = options;
  const { isOfKey = () => false } = options;
  /** The newest that was opened; and whether it can still be used. */
  let sink: FencedSink | undefined;
  let isWhole = false;
  let isClosed = false;
  let queue: Promise<unknown> = Promise.resolve();
  /** The newest entry that was appended. */
  let newest: string | undefined;
  /** The offset before which all is known. */
  let readTo: bigint | undefined;
  /** Keys of guests whose entries are long over: the topic would keep them for ever. */
  let over: readonly string[] = [];

  /** Gives the offset behind it. */
  const commit = async (
    to: FencedSink,
    key: string,
    text: string,
    beside: readonly Message[] = [],
  ): Promise<bigint> => {
    try {
      const message = { topic, key, value: Buffer.from(text) };
      const tombstones = over.map((each) => ({ topic, key: each, value: null }));
      const ends = await leftUndecided(() =>
        to.commit([message, ...beside, ...tombstones], 'committed'),
      );
      over = [];
      // A broker that has had it before does not say where it is.
      const end = ends.get(topic)?.get(0) ?? (await logEnds(to)).high;
      newest = text;
      return end;
    } catch (error) {
      isWhole = false;
      await to.close().catch(() => undefined); // what came before it says more
      if (!isGone(error)) throw error;
      await remake();
      throw gone(topic, error);
    }
  };
  const logEnds = async (from: Pick<TransactionalLog, 'bounds'>): Promise<Bounds> =>
    (await from.bounds(topic, 'uncommitted')).get(0) ?? { low: 0n, high: 0n };
  const open = async (own?: FencedSink): Promise<FencedSink> => {
    if (isClosed) throw closed();
    sink = await log.open(transactionalId, own?.producer);
    if (isClosed) {
      await sink.close();
      throw closed();
    }
    isWhole = true;
    return sink;
  };
  /** The newest entry of each key of the account and its guests, in the order of the log, and of each other account; and where reading goes on. */
  const entries = async (from: Pick<TransactionalLog, 'bounds'>) => {
    const { newest: all, next } = await known.asOf(() => logEnds(from));
    const own = [...all.values()].filter((one) => isOfAccount(one, account));
    return {
      all: own.sort((a, b) => Number(a.offset) - Number(b.offset)),
      others: [...all.values()].filter((one) => !isOfAccount(one, account)),
      next,
    };
  };
  const isNamesake = ({ value }: LogMessage) => isOfKey(String(value));
  /** The same, with the entry of this text: where it is not among them, they were read of a topic that had this name before. */
  const entriesWith = async (text: string, from: Pick<TransactionalLog, 'bounds'>) => {
    const isIt = (one: LogMessage) => String(one.value) === text;
    let found = await entries(from);
    if (!found.all.some(isIt)) {
      known.forget();
      found = await entries(from);
    }
    return { ...found, own: found.all.find(isIt) };
  };
  /** After a lost producer. Its epoch is over, too, when a transaction ran out of time: brokers don't tell, the entries do. */
  const reopened = async (): Promise<FencedSink> => {
    try {
      return await open(sink);
    } catch (error) {
      if (!sink || !isEpochError(error)) throw error;
      await lastValueFrom(timer(CLAIM_GRACE_MS, scheduler));
      const last = (await entries(log)).all.findLast((one) => isOwn(one, account));
      if (last && !isMine(String(last.value))) throw fenced(error);
      return open();
    }
  };
  /** One that is refused was overtaken by another process that is starting: it is left to that one. */
  const claimed = async (text: string, beside: readonly Message[] | undefined) => {
    try {
      const own = await open(isWhole ? undefined : sink);
      return { own, end: await commit(own, claimKey(account), text, beside) };
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
    takeOver: (text, beside) =>
      inTurn(async () => {
        const { own, end } = await claimed(text, beside);
        const claimedAt = scheduler.now();
        const { all, own: claim, others, next } = await entriesWith(text, own);
        if (!claim) {
          const isBehind = ({ offset }: LogMessage) => BigInt(offset) >= end;
          throw all.some((one) => isOwn(one, account) && isBehind(one))
            ? fenced(undefined)
            : unread(topic);
        }
        const before = all.filter((one) => one !== claim);
        const found = guestsAt(before, account, claim);
        ({ over } = found);
        readTo = next;
        return {
          entries: before.filter((one) => isOwn(one, account)).map((one) => entryOf(one, claim)),
          claimedAt,
          guests: [...found.guests, ...recentAt(others.filter(isNamesake), claim)],
          at: scheduler.now(),
        };
      }),
    append: (text, beside) =>
      inTurn(async () => {
        await commit(isWhole && sink ? sink : await reopened(), account, text, beside);
      }),
    guests: () =>
      inTurn(async () => {
        if (newest === undefined || !sink || readTo === undefined) throw unread(topic);
        const { all, own, next } = await entriesWith(newest, sink);
        if (!own) throw unread(topic);
        // A topic that was made anew is shorter than what was read of it.
        const from = readTo <= next ? readTo : 0n;
        readTo = next;
        const since = all.filter(({ offset }) => BigInt(offset) >= from);
        return { guests: guestsAt(since, account, own).guests, at: scheduler.now() };
      }),
    close: async () => {
      isWhole = false;
      isClosed = true;
      await sink?.close();
      await queue;
    },
  };
}

function isGone(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'TOPIC_CHANGED';
}

function gone(topic: string, cause: unknown): CellarstreamError {
  const message = `${topic} was gone: it has been made anew`;
  return new CellarstreamError('KAFKA_UNREACHABLE', message, { cause, context: { topic } });
}

function closed(): CellarstreamError {
  return new CellarstreamError('COMMIT_FAILED', 'the ledger is closed');
}

/** As when the topic is deleted meanwhile. */
function unread(topic: string): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `${topic} lacks the record that was just written to it: the ledger is taken over again`,
    { context: { topic } },
  );
}
