// Entries of the topic of ledgers: whose they are, and how old.

import type { LogMessage } from '../fetch/record-batches.ts';

/** An entry of a topic of ledgers. */
export interface LedgerEntry {
  readonly text: string;
  /** For how long it had been there, at the least, ms. */
  readonly ageMs: number;
}

/** A broker's clock may have been set by so much between two messages, ms. */
const CLOCK_MARGIN_MS = 100;
/** By the timestamps of whichever brokers: a guest's entry is so old that nothing of it counts, ms. */
const LONG_OVER_MS = 10 * 60_000;

/** The key of what a guest of an account declares: one for each, so that compaction leaves the account's own. */
export function guestKey(account: string, instance: string): string {
  return `${account}/${instance}`;
}

/** The key of claims: not the account's own, or compaction would leave a claim in the place of what was declared before it. */
export function claimKey(account: string): string {
  return guestKey(account, '');
}

/** Whether an entry is the account's or one of its guests'. */
export function isOfAccount({ key }: LogMessage, account: string): boolean {
  const text = key?.toString();
  return text === account || (text?.startsWith(claimKey(account)) ?? false);
}

/** Whether it is a declaration or a claim of whoever has the account. */
export function isOwn({ key, value }: LogMessage, account: string): boolean {
  return value !== null && isKeyOfOwn(key, account);
}

function isKeyOfOwn(key: LogMessage['key'], account: string): boolean {
  return [account, claimKey(account)].includes(String(key));
}

/** How old an entry was when another one was appended. */
export function entryOf(entry: LogMessage, at: LogMessage): LedgerEntry {
  return { text: String(entry.value), ageMs: ageMs(entry, at) };
}

/**
 * For how long an entry had been there when another one was written, at the least, ms: by the clock of the broker that wrote
 * both. Where there were two, or it was not asked, nothing is known.
 */
export function ageMs(entry: Stamped, at: Stamped): number {
  const isComparable =
    entry.isAppendTime && at.isAppendTime && entry.leaderEpoch === at.leaderEpoch;
  if (!isComparable) return 0;
  return Math.max(0, Number(at.timestamp) - Number(entry.timestamp) - CLOCK_MARGIN_MS);
}

type Stamped = Pick<LogMessage, 'timestamp' | 'leaderEpoch' | 'isAppendTime'>;

/** What guests have declared, as of an entry: the newest of each tells of those before; and the keys of what is long over. */
export function guestsAt(
  entries: readonly LogMessage[],
  account: string,
  at: LogMessage,
): { readonly guests: readonly LedgerEntry[]; readonly over: readonly string[] } {
  const isGuests = (one: LogMessage) => one !== at && !isKeyOfOwn(one.key, account);
  const newest = new Map(entries.filter(isGuests).map((one) => [String(one.key), one]));
  const left = [...newest].filter(([, { value }]) => value !== null);
  return {
    guests: recentAt(
      left.map(([, one]) => one),
      at,
    ),
    over: left.filter(([, one]) => isLongOver(one, at)).map(([key]) => key),
  };
}

/** Those of which anything may still count when another one was written. */
export function recentAt(entries: readonly LogMessage[], at: LogMessage): readonly LedgerEntry[] {
  return entries.filter((one) => !isLongOver(one, at)).map((one) => entryOf(one, at));
}

function isLongOver({ timestamp }: LogMessage, at: LogMessage): boolean {
  return Number(at.timestamp) - Number(timestamp) > LONG_OVER_MS;
}
