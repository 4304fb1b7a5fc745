import type { AccountWord } from './fleet-record.ts';

/** An account that takes its instance down so often within {@link LATELY_MS} is quarantined. */
export const MAX_LOSSES = 3;
const LATELY_MS = 600_000;
/** So soon after it was taken an instance has to be lost for the account to be the likely cause, ms. */
export const PROBATION_MS = 15_000;
/** How long the others need to notice, at most, ms: a session and a rebalance. */
const NOTICED_WITHIN_MS = 12_000;
/** How long a quarantine lasts, ms. A change of the account's file ends it sooner. */
const QUARANTINE_MS = 3_600_000;

/** Which instances there are, and when. */
export interface Moment {
  /** Names this process. */
  readonly me: string;
  readonly members: ReadonlySet<string>;
  readonly now: number;
}

/**
 * When instances were lost just after they had taken the account, lately: ms since the epoch. With the last one, where that is
 * found out now. One that is lost long after may have had any cause.
 */
export function lossesOf(word: AccountWord | undefined, { me, members, now }: Moment): number[] {
  if (!word) return [];
  const lately = word.losses.filter((at) => at > now - LATELY_MS);
  const { owner, takenAt = -Infinity } = word;
  const isLost = owner !== undefined && owner.instance !== me && !members.has(owner.instance);
  return isLost && now - takenAt < PROBATION_MS + NOTICED_WITHIN_MS ? [...lately, now] : lately;
}

/** Another loss would put it into quarantine: no other such account is taken beside it. */
export function isSuspect(losses: readonly number[]): boolean {
  return losses.length === MAX_LOSSES - 1;
}

export function isQuarantined(word: AccountWord | undefined, now: number): boolean {
  return word?.quarantinedAt !== undefined && now < word.quarantinedAt + QUARANTINE_MS;
}
