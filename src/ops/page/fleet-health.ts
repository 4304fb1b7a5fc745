import type { FleetAccountStatus } from '../status/fleet-status-json.ts';
import { titleOf } from './judgement.ts';

/** How an account is, from bad to good. */
export type Health = 'bad' | 'slow' | 'busy' | 'good';

/** Who starts or moves for longer, ms, is slow. */
const SLOW_MS = 20_000;

/** @param at When it was told, ms since the epoch. */
export function healthOf({ state, since, figures }: FleetAccountStatus, at: number): Health {
  if (state === 'starting' || state === 'moving') return at - since > SLOW_MS ? 'slow' : 'busy';
  if (state !== 'running') return 'bad';
  if (figures === null || figures.ready) return 'good';
  return figures.causes.every((cause) => cause === 'starting') ? 'busy' : 'bad';
}

/** What is wrong with an account, in words; empty where nothing is. */
export function problemOf({ state, problem, figures }: FleetAccountStatus): string {
  const why = problem === null ? '' : `: ${problem}`;
  switch (state) {
    case 'running':
      return figures === null || figures.ready ? '' : titleOf(figures.causes);
    case 'starting':
      return `it is starting${why}`;
    case 'moving':
      return `it is moving to another instance${why}`;
    case 'without-owner':
      return `no instance runs it${why}`;
    case 'failed':
      return `it can't go on${why}`;
    case 'wrong-file':
      return `its file is wrong${why}`;
    case 'quarantined':
      return `quarantined, because it took its instance down again and again${why}`;
  }
}

/** The same with all that is known of it: of one that runs, why it is not ready. */
export function fullProblemOf(account: FleetAccountStatus): string {
  const { state, figures } = account;
  if (state !== 'running' || figures === null || figures.ready) return problemOf(account);
  return figures.reasons.length > 0 ? figures.reasons.join('; ') : problemOf(account);
}

const RANKS: readonly Health[] = ['bad', 'slow', 'busy', 'good'];

/** What there is to say beside its state: of one that runs, why it is not ready. Empty where that says it all. */
export function besideState(account: FleetAccountStatus): string {
  return account.state === 'running' ? fullProblemOf(account) : (account.problem ?? '');
}

/** From bad to good. */
export function rank(health: Health): number {
  return RANKS.indexOf(health);
}
