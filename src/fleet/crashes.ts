import type { AccountTopicState } from './fleet-record.ts';

/** Number of crashes within ten minutes that put an account into quarantine. Only crashes shortly after a claim of the account count. */
export const MAX_CRASHES = 3;
/** Time in ms after which a crash no longer counts towards {@link MAX_CRASHES}. */
const CRASH_WINDOW_MS = 600_000;
/** Time after the claim of an account within which a crash of its owner is blamed on the account, in ms. */
export const PROBATION_MS = 15_000;
/** Longest time until other instances detect a crash, in ms: a session timeout and a rebalance. */
const CRASH_DETECTION_MS = 12_000;
/** How long an account stays in quarantine, in ms. A change of the account's file ends it sooner. */
const QUARANTINE_MS = 3_600_000;

/**
 * Returns when, in the last ten minutes, instances crashed shortly after they claimed the account, in epoch ms. A crash of the last owner is
 * not recorded yet: its time is `now`.
 */
export function crashTimesOf(
  account: AccountTopicState | undefined,
  { instance, members, now }: { instance: string; members: ReadonlySet<string>; now: number },
): number[] {
  if (!account) return [];
  const recent = account.crashTimes.filter((at) => at > now - CRASH_WINDOW_MS);
  const { owner, claimedAt = -Infinity } = account;
  // The fleet's topic does not contain the crash of the present owner yet.
  const hasCrashed = owner && owner.instance !== instance && !members.has(owner.instance);
  return hasCrashed && now - claimedAt < PROBATION_MS + CRASH_DETECTION_MS
    ? [...recent, now]
    : recent;
}

/**
 * Whether one more crash would quarantine an account with these crash times. An instance claims at most one such account within
 * {@link PROBATION_MS}.
 */
export function isSuspect(crashTimes: readonly number[]): boolean {
  return crashTimes.length === MAX_CRASHES - 1;
}

export function isQuarantined(account: AccountTopicState | undefined, now: number): boolean {
  return account?.quarantinedAt !== undefined && now < account.quarantinedAt + QUARANTINE_MS;
}
