// The ledger topic for the owner of an account.

import { lastValueFrom, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { TransactionalLog, FencedSink, Message } from '../sink.ts';
import type { Bounds } from '../../kafka/log.ts';
import { isEpochError } from '../../kafka/client/kafka-error.ts';
import {
  claimKey,
  entryOf,
  guestEntriesAt,
  isOfAccount,
  isOwn,
  unexpiredAt,
} from './ledger-entries.ts';
import type { LedgerEntry } from './ledger-entries.ts';
import type { CompactedView } from '../../kafka/fetch/compacted-view.ts';
import type { LogMessage } from '../../kafka/fetch/record-batches.ts';
import { CLAIM_GRACE_MS, fencedError, asUnknownOutcome } from '../producer/fencing.ts';

/** An account's entries in the ledger topic, as the account's owner uses them. */
export interface AccountLog {
  /**
   * Claims the ledger: fences the previous owner, appends an entry, and returns all entries before it. These include uncommitted ones,
   * because their writer may have acted on an entry whose commit was not acknowledged. `beside`: messages to commit in the same
   * transaction.
   */
  readonly claim: (text: string, beside?: readonly Message[]) => Promise<PriorEntries>;
  /**
   * Appends an entry; resolves when it is committed. After a failed call it uses a new producer, unless another process has appended an
   * entry since. `beside`: messages to commit in the same transaction.
   *
   * @throws CellarstreamError `FENCED`; `KAFKA_UNREACHABLE`, `COMMIT_FAILED`, ...
   */
  readonly append: (text: string, beside?: readonly Message[]) => Promise<void>;
  /** Returns the entries that guests (processes beside the service) have appended since the ledger was last read. */
  readonly guests: () => Promise<GuestEntries>;
  /** Closes the log; resolves when no call is in flight, as a late claim would fence a successor. */
  readonly close: () => Promise<void>;
}

/** Entries of guests (processes beside the service) in the ledger, with their ages at the time of the caller's own newest entry. */
export interface GuestEntries {
  /** Newest ledger entry of each guest process; with a claim also those of other accounts with the same API key. */
  readonly guestEntries: readonly LedgerEntry[];
  /** When the entries were read, in ms of the scheduler. Entries after the caller's own have an age of 0. */
  readonly at: number;
}

export interface PriorEntries extends GuestEntries {
  /**
   * The newest declaration of requests and the newest claim before the caller's own entry, if there are any, with their ages at
   * `claimedAt`.
   */
  readonly entries: readonly LedgerEntry[];
  /** Latest time at which the caller's own entry was written, in ms of the scheduler. */
  readonly claimedAt: number;
}

export interface AccountLogOptions {
  readonly log: Pick<TransactionalLog, 'open' | 'bounds'>;
  readonly topic: string;
  /** View of the ledger topic (newest message of each key), read to the end of the log, including uncommitted entries. */
  readonly ledgerTopic: CompactedView<LogMessage>;
  readonly account: string;
  readonly transactionalId: string;
  readonly scheduler: SchedulerLike;
  /** Creates the ledger topic again after it was deleted. */
  readonly recreateTopic: () => Promise<unknown>;
  /** Whether an entry with this text was written by this process. */
  readonly isOwnEntry: (text: string) => boolean;
  /** Whether another account's entry declares requests with the same API key. Default: always false. */
  readonly isOfApiKey?: (text: string) => boolean;
}

/**
 * Opens the ledger topic for the owner of an account. Each account has its own transactional id, so that a claim ends the predecessor's
 * open transaction. Entries are read to the end of the log and not to its last stable offset, which another account's open transaction
 * holds back.
 */
export function accountLog(options: AccountLogOptions): AccountLog {
  const {
    log,
    topic,
    ledgerTopic,
    account,
    transactionalId,
    scheduler,
    recreateTopic,
    isOwnEntry,
  } = options;
  const { isOfApiKey = () => false } = options;
  /** The newest sink that was opened. */
  let sink: FencedSink | undefined;
  /** Whether `sink` can still be used. */
  let isWhole = false;
  let isClosed = false;
  let queue: Promise<unknown> = Promise.resolve();
  /** Text of the newest entry that this process has appended. */
  let newest: string | undefined;
  /** Offset before which all entries have been read. */
  let readTo: bigint | undefined;
  /** Keys of guest processes whose entries have expired: the next commit deletes them, as the topic would retain them without end. */
  let over: readonly string[] = [];

  /** Commits an entry to the ledger topic, and returns the offset after it. */
  const commit = async (
    to: FencedSink,
    key: string,
    text: string,
    sideMessages: readonly Message[] = [],
  ): Promise<bigint> => {
    try {
      const message = { topic, key, value: Buffer.from(text) };
      const tombstones = over.map((each) => ({ topic, key: each, value: null }));
      const ends = await asUnknownOutcome(() =>
        to.commit([message, ...sideMessages, ...tombstones], 'committed'),
      );
      over = [];
      // A broker that detects a batch as a duplicate does not report its offset.
      const end = ends.get(topic)?.get(0) ?? (await logEnds(to)).high;
      newest = text;
      return end;
    } catch (error) {
      isWhole = false;
      await to.close().catch(() => undefined); // the earlier error says more
      if (!isTopicChanged(error)) throw error;
      await recreateTopic();
      throw topicDeletedError(topic, error);
    }
  };
  const logEnds = async (from: Pick<TransactionalLog, 'bounds'>): Promise<Bounds> =>
    (await from.bounds(topic, 'uncommitted')).get(0) ?? { low: 0n, high: 0n };
  const open = async (own?: FencedSink): Promise<FencedSink> => {
    if (isClosed) throw ledgerClosedError();
    sink = await log.open(transactionalId, own?.producer);
    if (isClosed) {
      await sink.close();
      throw ledgerClosedError();
    }
    isWhole = true;
    return sink;
  };
  /**
   * Reads the ledger, and returns the newest entry of each key. `all`: entries of this account and of its guests (processes beside the
   * service), in log order; `others`: entries of other accounts; `next`: offset at which the next read continues.
   *
   * @param from Reports the end of the ledger topic, up to which it is read.
   */
  const entries = async (from: Pick<TransactionalLog, 'bounds'>) => {
    const { newest: all, next } = await ledgerTopic.asOf(() => logEnds(from));
    const own = [...all.values()].filter((one) => isOfAccount(one, account));
    return {
      all: own.sort((a, b) => Number(a.offset) - Number(b.offset)),
      others: [...all.values()].filter((one) => !isOfAccount(one, account)),
      next,
    };
  };
  const isNamesake = ({ value }: LogMessage) => isOfApiKey(String(value));
  /**
   * Returns the result of `entries`, and as `own` the entry with this text. If that entry is missing, the cached entries may be of a
   * deleted topic, and are read again.
   */
  const entriesWith = async (text: string, from: Pick<TransactionalLog, 'bounds'>) => {
    const isIt = (one: LogMessage) => String(one.value) === text;
    let found = await entries(from);
    if (!found.all.some(isIt)) {
      ledgerTopic.invalidate();
      found = await entries(from);
    }
    return { ...found, own: found.all.find(isIt) };
  };
  /**
   * Opens a sink in place of a failed one. An outdated epoch may be due to another process or to a transaction's timeout: only the ledger's
   * entries show which.
   */
  const reopened = async (): Promise<FencedSink> => {
    try {
      return await open(sink);
    } catch (error) {
      if (!sink || !isEpochError(error)) throw error;
      await lastValueFrom(timer(CLAIM_GRACE_MS, scheduler));
      const last = (await entries(log)).all.findLast((one) => isOwn(one, account));
      if (last && !isOwnEntry(String(last.value))) throw fencedError(error);
      return open();
    }
  };
  /** Commits a claim. An epoch error means that another process has opened the ledger meanwhile: the account is left to that process. */
  const claimed = async (text: string, beside: readonly Message[] | undefined) => {
    try {
      const own = await open(isWhole ? undefined : sink);
      return { own, end: await commit(own, claimKey(account), text, beside) };
    } catch (error) {
      throw isEpochError(error) ? fencedError(error) : error;
    }
  };
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = queue.then(work, work);
    queue = done.catch(() => undefined); // its caller gets the error
    return done;
  };

  return {
    claim: (text, beside) =>
      inTurn(async () => {
        const { own, end } = await claimed(text, beside);
        const claimedAt = scheduler.now();
        const { all, own: claim, others, next } = await entriesWith(text, own);
        if (!claim) {
          const isBehind = ({ offset }: LogMessage) => BigInt(offset) >= end;
          throw all.some((one) => isOwn(one, account) && isBehind(one))
            ? fencedError(undefined)
            : unreadError(topic);
        }
        const before = all.filter((one) => one !== claim);
        const found = guestEntriesAt(before, account, claim);
        ({ over } = found);
        readTo = next;
        return {
          entries: before.filter((one) => isOwn(one, account)).map((one) => entryOf(one, claim)),
          claimedAt,
          guestEntries: [...found.guests, ...unexpiredAt(others.filter(isNamesake), claim)],
          at: scheduler.now(),
        };
      }),
    append: (text, beside) =>
      inTurn(async () => {
        await commit(isWhole && sink ? sink : await reopened(), account, text, beside);
      }),
    guests: () =>
      inTurn(async () => {
        if (newest === undefined || !sink || readTo === undefined) throw unreadError(topic);
        const { all, own, next } = await entriesWith(newest, sink);
        if (!own) throw unreadError(topic);
        // A recreated topic may be shorter than what was read of the deleted one.
        const from = readTo <= next ? readTo : 0n;
        readTo = next;
        const since = all.filter(({ offset }) => BigInt(offset) >= from);
        return { guestEntries: guestEntriesAt(since, account, own).guests, at: scheduler.now() };
      }),
    close: async () => {
      isWhole = false;
      isClosed = true;
      await sink?.close();
      await queue;
    },
  };
}

function isTopicChanged(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'TOPIC_CHANGED';
}

function topicDeletedError(topic: string, cause: unknown): CellarstreamError {
  const message = `${topic} was deleted: it has been recreated`;
  return new CellarstreamError('KAFKA_UNREACHABLE', message, { cause, context: { topic } });
}

function ledgerClosedError(): CellarstreamError {
  return new CellarstreamError('COMMIT_FAILED', 'the ledger is closed');
}

/** Error for a committed entry that is missing, for example because the topic was deleted meanwhile. */
function unreadError(topic: string): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `${topic} lacks the entry that was just committed to it: claiming the ledger again`,
    { context: { topic } },
  );
}
