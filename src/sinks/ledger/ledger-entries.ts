// Entries of the ledger topic: which account they belong to, and how old they are.

import { CellarstreamError } from '../../core/errors.ts';
import type { LogMessage } from '../../kafka/fetch/record-batches.ts';

export interface LedgerEntry {
  readonly text: string;
  /** Minimum age of the entry, in ms, at the time when the reading process appended its own newest entry. */
  readonly ageMs: number;
}

/**
 * Margin that is subtracted from the ages of ledger entries, in ms. If it is too small, the adjustment of a broker's clock can make an
 * entry seem too old.
 */
const CLOCK_MARGIN_MS = 100;
/**
 * Age in ms above which ledger entries (declared requests) of guests and of other accounts with the same API key are ignored. If it is too
 * small, a difference between brokers' clocks can hide requests that still count against the quota.
 */
const EXPIRED_AFTER_MS = 10 * 60_000;

/** Returns the key of a guest's declarations. It differs from the owner's keys, so that compaction does not replace the owner's entries. */
export function guestKey(account: string, instance: string): string {
  return `${account}/${instance}`;
}

/**
 * Returns the key of an account's claims. It differs from the key of declarations, so that a claim does not replace the newest declaration
 * in compaction.
 */
export function claimKey(account: string): string {
  return guestKey(account, '');
}

/** Whether a message of the ledger topic belongs to the account or to one of its guests. */
export function isOfAccount({ key }: LogMessage, account: string): boolean {
  const text = key?.toString();
  return text === account || (text?.startsWith(claimKey(account)) ?? false);
}

/** Whether a message of the ledger topic is a declaration or a claim by an owner of the account: not by a guest, and no tombstone. */
export function isOwn({ key, value }: LogMessage, account: string): boolean {
  return value !== null && isOwnKey(key, account);
}

function isOwnKey(key: LogMessage['key'], account: string): boolean {
  return [account, claimKey(account)].includes(String(key));
}

/** Converts a message of the ledger topic to an entry. The entry's age is as of the time when the message `at` was appended. */
export function entryOf(entry: LogMessage, at: LogMessage): LedgerEntry {
  return { text: String(entry.value), ageMs: ageMs(entry, at) };
}

/**
 * Returns a lower bound of the age that the ledger message `entry` had when the message `at` was appended, in ms by the broker's clock. 0
 * if the two timestamps can't be compared.
 */
export function ageMs(entry: Stamped, at: Stamped): number {
  const isComparable =
    entry.isAppendTime && at.isAppendTime && entry.leaderEpoch === at.leaderEpoch;
  if (!isComparable) return 0;
  return Math.max(0, Number(at.timestamp) - Number(entry.timestamp) - CLOCK_MARGIN_MS);
}

type Stamped = Pick<LogMessage, 'timestamp' | 'leaderEpoch' | 'isAppendTime'>;

/**
 * Returns the newest entry of each guest (a process, such as `check`, that uses the API key beside the service). Of entries
 * that had expired when message `at` was appended, only the keys of the messages are returned, in `expired`.
 */
export function guestEntriesAt(
  entries: readonly LogMessage[],
  account: string,
  at: LogMessage,
): { readonly guests: readonly LedgerEntry[]; readonly expired: readonly string[] } {
  const isGuests = (one: LogMessage) => one !== at && !isOwnKey(one.key, account);
  const newest = new Map(entries.filter(isGuests).map((one) => [String(one.key), one]));
  const left = [...newest.values()].filter(({ value }) => value !== null);
  const expired = left.filter((one) => isExpired(one, at)).map(({ key }) => String(key));
  return { guests: unexpiredAt(left, at), expired };
}

/**
 * Converts ledger messages to entries with ages as of the message `at`. Leaves out messages more than `EXPIRED_AFTER_MS` older than `at`.
 */
export function unexpiredAt(
  entries: readonly LogMessage[],
  at: LogMessage,
): readonly LedgerEntry[] {
  return entries.filter((one) => !isExpired(one, at)).map((one) => entryOf(one, at));
}

function isExpired({ timestamp }: LogMessage, at: LogMessage): boolean {
  return Number(at.timestamp) - Number(timestamp) > EXPIRED_AFTER_MS;
}

/** Creates the error for a ledger entry that was written and can't be read back, for example because the topic was deleted meanwhile. */
export function unreadError(topic: string): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `this process wrote to ${topic} how many API requests it is going to send (its ledger entry), but can't read the entry back, perhaps because the topic was deleted. A service writes it again by itself; if a command ended with this error, run it again`,
    { context: { topic } },
  );
}
