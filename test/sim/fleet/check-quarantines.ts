import type { Said } from './sim-fleet-topic.ts';

const LATELY_MS = 600_000;
/** So many instances an account may take down. */
const MOST = 3;
/** One account on probation at a time: each of them may be waited for so long, ms. */
const PROBATION_MS = 15_000;

/** Whether the last word on an account is that nobody is to run it. */
export function isQuarantined(said: readonly Said[], account: string): boolean {
  return said.findLast((each) => each.account === account)?.type === 'quarantined';
}

/** How much longer than others an account may be without an owner, ms: where it may soon be quarantined, as others may. */
export function probationMs(said: readonly Said[], accounts: readonly string[], now: number) {
  const suspects = accounts.filter((account) => lostTakers(said, account, now) >= MOST - 1);
  return (account: string) =>
    suspects.includes(account) ? (suspects.length - 1) * PROBATION_MS : 0;
}

/** None is quarantined that has not taken instances down. */
export function checkQuarantines(said: readonly Said[]): string[] {
  return said.flatMap(({ type, account, at, offset }) =>
    type === 'quarantined' && lostTakers(said.slice(0, offset), account, at) < MOST
      ? [`${account} was quarantined at ${at} without a cause`]
      : [],
  );
}

/** How often an account was taken lately, and then taken by somebody else, or nobody, without a release. */
function lostTakers(said: readonly Said[], account: string, now: number): number {
  let lost = 0;
  let taker: Said | undefined;
  for (const each of said) {
    if (each.account !== account) continue;
    if (each.type === 'released' && each.instance === taker?.instance) taker = undefined;
    if (each.type !== 'takes' && each.type !== 'runs') continue;
    if (each.instance === taker?.instance) continue;
    if (taker && taker.at >= now - LATELY_MS) lost += 1;
    taker = each;
  }
  return taker ? lost + 1 : lost;
}
