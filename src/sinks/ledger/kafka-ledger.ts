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
  unreadError,
} from './ledger-entries.ts';
import type { LedgerEntry } from './ledger-entries.ts';
import type { CompactedView } from '../../kafka/fetch/compacted-view.ts';
import type { LogMessage } from '../../kafka/fetch/record-batches.ts';
import { CLAIM_GRACE_MS, fencedError, asUnknownOutcome } from '../producer/fencing.ts';

/** Reads and writes an account's entries in the ledger topic, for the account's owner. */
export interface AccountLog {
  /**
   * Claims the ledger: fences the previous owner and appends the entry `text`. Returns the newest earlier entries, committed or not.
   *
   * @param beside Messages to commit in the same transaction.
   */
  readonly claim: (text: string, beside?: readonly Message[]) => Promise<PriorEntries>;
  /**
   * Appends an entry. Resolves when the entry is committed. A failed call may be repeated; it then throws `FENCED` if another process has
   * claimed the account meanwhile.
   *
   * @param beside Messages to commit in the same transaction.
   * @throws CellarstreamError `FENCED`; `KAFKA_UNREACHABLE`, `COMMIT_FAILED`, ...
   */
  readonly append: (text: string, beside?: readonly Message[]) => Promise<void>;
  /**
   * Returns the newest entry of each guest that has appended entries since the last successful call of `claim` or `guests`. Expired entries
   * are left out.
   */
  readonly guests: () => Promise<GuestEntries>;
  /** Ends the access to the ledger topic. Resolves once all earlier calls have ended: a claim in flight could still fence a successor. */
  readonly close: () => Promise<void>;
}

/** Ledger entries of guests (processes that use the API key beside the service). The ages in the entries count back from the time `at`. */
export interface GuestEntries {
  /**
   * Newest ledger entry of each guest process, unless it has expired ({@link unexpiredAt}). The result of a claim also includes the entries
   * of other accounts with the same API key.
   */
  readonly guestEntries: readonly LedgerEntry[];
  /**
   * Time to which the ages of `guestEntries` refer, in ms (`scheduler.now()`). An entry with the age 500 was written at `at - 500` or
   * earlier.
   */
  readonly at: number;
}

export interface PriorEntries extends GuestEntries {
  /**
   * Earlier ledger entries of the account's owners, with ages as of `claimedAt`. An owner gets only the newest declaration, if there is
   * one. A guest gets all declarations and claims that the topic still contains.
   */
  readonly entries: readonly LedgerEntry[];
  /**
   * Value of `scheduler.now()`, in ms, when the broker had just acknowledged the caller's own entry (a claim, or a guest's declaration).
   */
  readonly claimedAt: number;
}

export interface AccountLogOptions {
  readonly log: Pick<TransactionalLog, 'open' | 'bounds'>;
  readonly topic: string;
  /** View of the newest message of each key in the ledger topic, including uncommitted entries. */
  readonly ledgerTopic: CompactedView<LogMessage>;
  readonly account: string;
  readonly transactionalId: string;
  readonly scheduler: SchedulerLike;
  readonly recreateTopic: () => Promise<unknown>;
  /** Whether this process has written the ledger entry with this text. */
  readonly isOwnEntry: (text: string) => boolean;
  /** Whether `text`, a ledger entry of another account, declares requests that use this account's API key. Default: always false. */
  readonly isOfApiKey?: (text: string) => boolean;
}

/**
 * Opens the ledger topic for the owner of an account. A claim ends the previous owner's open transaction, because both use the account's
 * transactional id.
 */
export function accountLog(options: AccountLogOptions): AccountLog {
  return new OwnerLog(options);
}

/**
 * The ledger topic as the account's owner uses it. Calls run one after another. Each claim opens a new producer for the following appends.
 * After a failed commit, the next append opens a new one.
 */
class OwnerLog implements AccountLog {
  readonly #options: AccountLogOptions;
  /** The sink that was opened most recently. `#isUsable` says whether it can still be used. */
  #sink: FencedSink | undefined;
  #isUsable = false;
  #isClosed = false;
  #queue: Promise<unknown> = Promise.resolve();
  /** Text of the newest ledger entry that this process has committed; undefined before the first one. */
  #newest: string | undefined;
  /** Offset in the ledger topic before which all entries have been read; undefined before the first claim. */
  #readTo: bigint | undefined;
  /**
   * Keys of guest processes whose entries have expired. The next commit writes tombstones for these keys, because compaction would
   * otherwise retain the entries forever.
   */
  #expired: readonly string[] = [];

  constructor(options: AccountLogOptions) {
    this.#options = options;
  }

  claim(text: string, beside?: readonly Message[]): Promise<PriorEntries> {
    return this.#inTurn(async () => {
      const { topic, account, scheduler, isOfApiKey = () => false } = this.#options;
      const { sink, end } = await this.#commitClaim(text, beside);
      const claimedAt = scheduler.now();
      const { all, others, next, own } = await this.#readWith(text, sink);
      if (!own) {
        const isBehind = ({ offset }: LogMessage) => BigInt(offset) >= end;
        throw all.some((one) => isOwn(one, account) && isBehind(one))
          ? fencedError(undefined)
          : unreadError(topic);
      }
      const before = all.filter((one) => one !== own);
      const { guests, expired } = guestEntriesAt(before, account, own);
      this.#expired = expired;
      this.#readTo = next;
      const sameKey = others.filter(({ value }) => isOfApiKey(String(value)));
      return {
        entries: before.filter((one) => isOwn(one, account)).map((one) => entryOf(one, own)),
        claimedAt,
        guestEntries: [...guests, ...unexpiredAt(sameKey, own)],
        at: scheduler.now(),
      };
    });
  }

  append(text: string, beside?: readonly Message[]): Promise<void> {
    return this.#inTurn(async () => {
      const sink = this.#isUsable && this.#sink ? this.#sink : await this.#reopen();
      await this.#commit(sink, this.#options.account, text, beside);
    });
  }

  guests(): Promise<GuestEntries> {
    return this.#inTurn(async () => {
      const { topic, account, scheduler } = this.#options;
      if (this.#newest === undefined || !this.#sink || this.#readTo === undefined)
        throw unreadError(topic);
      const { all, own, next } = await this.#readWith(this.#newest, this.#sink);
      if (!own) throw unreadError(topic);
      // A recreated topic may be shorter than what was read of the deleted one.
      const from = this.#readTo <= next ? this.#readTo : 0n;
      this.#readTo = next;
      const since = all.filter(({ offset }) => BigInt(offset) >= from);
      return { guestEntries: guestEntriesAt(since, account, own).guests, at: scheduler.now() };
    });
  }

  async close(): Promise<void> {
    this.#isUsable = false;
    this.#isClosed = true;
    await this.#sink?.close();
    await this.#queue;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work, work);
    this.#queue = done.catch(() => undefined); // its caller gets the error
    return done;
  }

  /**
   * Opens a sink and commits a claim of the account with it: the ledger entry `text` and the messages `beside`. Returns the sink and an
   * offset in the ledger topic after the entry.
   *
   * @throws CellarstreamError `FENCED` if a broker says that the sink's epoch is outdated.
   */
  async #commitClaim(text: string, beside: readonly Message[] | undefined) {
    try {
      const sink = await this.#open(this.#isUsable ? undefined : this.#sink);
      const end = await this.#commit(sink, claimKey(this.#options.account), text, beside);
      return { sink, end };
    } catch (error) {
      // Another process has probably opened the transactional id: the account is left to it.
      throw isEpochError(error) ? fencedError(error) : error;
    }
  }

  /**
   * Commits in one transaction a ledger entry (`key` and `text`), the messages `beside`, and tombstones for the keys in `#expired`. Returns
   * an offset in the ledger topic after the entry. After a failure, `sink` is closed.
   */
  async #commit(
    sink: FencedSink,
    key: string,
    text: string,
    beside: readonly Message[] = [],
  ): Promise<bigint> {
    const { topic, recreateTopic } = this.#options;
    try {
      const message = { topic, key, value: Buffer.from(text) };
      const tombstones = this.#expired.map((each) => ({ topic, key: each, value: null }));
      const messages = [message, ...beside, ...tombstones];
      const ends = await asUnknownOutcome(() => sink.commit(messages));
      this.#expired = [];
      // A broker that detects a batch as a duplicate does not report its offset.
      const end = ends.get(topic)?.get(0) ?? (await this.#logEnds(sink)).high;
      this.#newest = text;
      return end;
    } catch (error) {
      this.#isUsable = false;
      await sink.close().catch(() => undefined); // the earlier error says more
      if (!(error instanceof CellarstreamError && error.code === 'TOPIC_CHANGED')) throw error;
      await recreateTopic();
      throw topicDeletedError(topic, error);
    }
  }

  async #open(previous?: FencedSink): Promise<FencedSink> {
    if (this.#isClosed) throw ledgerClosedError();
    const { log, transactionalId } = this.#options;
    const sink = await log.open(transactionalId, previous?.producer);
    this.#sink = sink;
    if (this.#isClosed) {
      await sink.close();
      throw ledgerClosedError();
    }
    this.#isUsable = true;
    return sink;
  }

  /**
   * Opens a sink in place of a failed one. Throws `FENCED` if that sink's epoch is outdated and another process wrote the account's newest
   * ledger entry.
   */
  async #reopen(): Promise<FencedSink> {
    try {
      return await this.#open(this.#sink);
    } catch (error) {
      if (!this.#sink || !isEpochError(error)) throw error;
      const { log, account, scheduler, isOwnEntry } = this.#options;
      await lastValueFrom(timer(CLAIM_GRACE_MS, scheduler));
      const last = (await this.#read(log)).all.findLast((one) => isOwn(one, account));
      if (last && !isOwnEntry(String(last.value))) throw fencedError(error);
      // The epoch is outdated for another reason, such as a timeout.
      return this.#open();
    }
  }

  /**
   * Reads the newest entry of each key of the ledger topic. Returns:
   *
   * - `all`: the entries of the account and its guests, in the order of their offsets;
   * - `others`: the entries of other accounts;
   * - `next`: the offset at which to continue reading.
   *
   * @param from Source of the topic's end offset, up to which entries are read.
   */
  async #read(from: BoundsSource) {
    const { ledgerTopic, account } = this.#options;
    const { newest, next } = await ledgerTopic.asOf(() => this.#logEnds(from));
    const entries = [...newest.values()];
    return {
      all: entries
        .filter((one) => isOfAccount(one, account))
        .sort((a, b) => Number(a.offset) - Number(b.offset)),
      others: entries.filter((one) => !isOfAccount(one, account)),
      next,
    };
  }

  /** Reads the ledger topic as `#read` does, and also returns the entry whose text is `text`, as `own`; undefined if there is none. */
  async #readWith(text: string, from: BoundsSource) {
    const isIt = (one: LogMessage) => String(one.value) === text;
    let found = await this.#read(from);
    if (!found.all.some(isIt)) {
      // The cached entries may be from a deleted topic, so the topic is read again from its beginning.
      this.#options.ledgerTopic.invalidate();
      found = await this.#read(from);
    }
    return { ...found, own: found.all.find(isIt) };
  }

  async #logEnds(from: BoundsSource): Promise<Bounds> {
    // Open transactions of other accounts hold the last stable offset back, and a process may have acted on an entry whose commit was not
    // acknowledged.
    const bounds = await from.bounds(this.#options.topic, 'uncommitted');
    return bounds.get(0) ?? { low: 0n, high: 0n };
  }
}

type BoundsSource = Pick<TransactionalLog, 'bounds'>;

function topicDeletedError(topic: string, cause: unknown): CellarstreamError {
  const message = `${topic} was deleted: this instance has created it again`;
  return new CellarstreamError('KAFKA_UNREACHABLE', message, { cause, context: { topic } });
}

function ledgerClosedError(): CellarstreamError {
  return new CellarstreamError(
    'COMMIT_FAILED',
    'this instance stopped serving the account before it wrote an entry to the ledger (the topic in which instances declare their requests to the API): the entry was not written',
  );
}
