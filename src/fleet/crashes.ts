import type { AccountTopicState } from './fleet-record.ts';

/** Number of crashes shortly after claims of an account, within {@link CRASH_WINDOW_MS}, that put the account into quarantine. */
export const MAX_CRASHES = 3;
/** How long a crash counts towards an account's quarantine, in ms. */
const CRASH_WINDOW_MS = 600_000;
/** How soon after a claim an instance has to crash for the account to be the likely cause, in ms. */
export const PROBATION_MS = 15_000;
/** Longest time until other instances detect a crash, in ms: a session timeout and a rebalance. */
const CRASH_DETECTION_MS = 12_000;
/** How long an account stays in quarantine, in ms. A change of the account's file ends it sooner. */
const QUARANTINE_MS = 3_600_000;

/**
 * Returns the recent times, in epoch ms, at which an instance crashed shortly after claiming the account, including a crash of the current
 * owner detected just now by this `instance`. Later crashes do not count: they may have any cause.
 */
export function crashTimesOf(
  account: AccountTopicState | undefined,
  context: { instance: string; members: ReadonlySet<string>; now: number },
): number[] {
  if (!account) return [];
  const { instance, members, now } = context;
  const recent = account.crashTimes.filter((at) => at > now - CRASH_WINDOW_MS);
  const { owner, claimedAt = -Infinity } = account;
  const hasCrashed = owner && owner.instance !== instance && !members.has(owner.instance);
  return hasCrashed && now - claimedAt < PROBATION_MS + CRASH_DETECTION_MS
    ? [...recent, now]
    : recent;
}

/** Whether one more crash would quarantine the account whose crashes these are. Only one such account is claimed at a time. */
export function isSuspect(crashTimes: readonly number[]): boolean {
  return crashTimes.length === MAX_CRASHES - 1;
}

export function isQuarantined(account: AccountTopicState | undefined, now: number): boolean {
  return account?.quarantinedAt !== undefined && now < account.quarantinedAt + QUARANTINE_MS;
}
