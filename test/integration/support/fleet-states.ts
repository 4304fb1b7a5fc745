import { expect, vi } from 'vitest';
import type { LogLine } from './cli.ts';
import type { Instance, TestAccount, TestFleet } from './fleet.ts';

export const SOON = { timeout: 60_000, interval: 100 };

/** No account is to be without an owner for longer. */
export const LONGEST_SILENCE_MS = 30_000;

export const named = (fleet: TestFleet, names: readonly string[]) =>
  fleet.accounts.filter(({ name }) => names.includes(name));

/** The newest generation of the group that an instance takes part in. */
export const generationOf = ({ cli }: Instance): LogLine | undefined =>
  cli.lines().findLast(({ event }) => event === 'generation');

export const timeOf = ({ time }: LogLine) => Date.parse(String(time));

/** When an instance was there. Until then its process starts, for as long as the machine takes. */
export const listening = async ({ cli }: Instance): Promise<number> =>
  timeOf(await cli.logged(({ event }) => event === 'listening'));

/** Resolves when so many accounts are shared out among these instances, and no others. */
export async function shared(instances: readonly Instance[], accounts: number): Promise<void> {
  await vi.waitFor(() => {
    const newest = instances.map(generationOf);
    const sum = newest.reduce((total, line) => total + Number(line?.accounts ?? 0), 0);
    expect(sum).toBe(accounts);
    for (const line of newest) expect(line?.instances).toHaveLength(instances.length);
  }, SOON);
}

/** Resolves when each of these accounts was answered again after a moment; gives how long that took, ms. */
export async function servedAgain(
  accounts: readonly TestAccount[],
  since: number,
  within = SOON,
): Promise<number[]> {
  return Promise.all(
    accounts.map(async ({ answered }) => {
      const next = () => answered().find((at) => at > since);
      await vi.waitFor(() => expect(next()).toBeDefined(), within);
      return next()! - since;
    }),
  );
}

/** Most of a minute's requests: a successor that knew of none would ask too many. */
const MOST_OF_QUOTA = 75;
const MINUTE_MS = 60_000;

/** Resolves when each of these accounts was asked so often within a minute. */
export async function mostOfQuota(accounts: readonly TestAccount[]): Promise<void> {
  const used = ({ polls }: TestAccount) =>
    polls().filter((at) => at > Date.now() - MINUTE_MS).length;
  await vi.waitFor(
    () => expect(Math.min(...accounts.map(used))).toBeGreaterThanOrEqual(MOST_OF_QUOTA),
    { timeout: 2 * MINUTE_MS, interval: 100 },
  );
}

export function longestGap(times: readonly number[]): number {
  return Math.max(...times.slice(1).map((at, n) => at - times[n]!));
}

/** The longest time without an answered request for each of these accounts, from a moment to now: ms. */
export function silences(accounts: readonly TestAccount[], since: number): readonly number[] {
  const now = Date.now();
  return accounts.map(({ answered }) =>
    longestGap([since, ...answered().filter((at) => at > since && at < now), now]),
  );
}

/** The same, held against the promise, and told. */
export function expectServed(
  fault: string,
  accounts: readonly TestAccount[],
  since: number,
): readonly number[] {
  const found = silences(accounts, since);
  const seconds = found.map((ms) => (ms / 1_000).toFixed(1));
  console.log(`longest silence of each account, s: ${fault}: ${seconds.join(' ')}`);
  expect(Math.max(...found)).toBeLessThan(LONGEST_SILENCE_MS);
  return found;
}
