import type { AccountWord } from './fleet-record.ts';

/** What an instance does with an account. */
export type Doing = 'nothing' | 'warming' | 'warm' | 'running' | 'stopping';

/** All that decides what an instance does with an account next. */
export interface Situation {
  /** Names this process. */
  readonly me: string;
  readonly doing: Doing;
  /** The newest generation that this instance knows; undefined while it knows none. */
  readonly generation: number | undefined;
  /** The instances of that generation. */
  readonly members: ReadonlySet<string>;
  /** Whether the account was given to this instance in it. */
  readonly isGiven: boolean;
  /** Whether nobody is to run it, as another account has its API key. */
  readonly isTwin?: boolean;
  /** What was said of the account; undefined where nothing was. */
  readonly word: AccountWord | undefined;
  /** How long ago this instance asked for it in this generation, ms; undefined where it has not. */
  readonly askedMs: number | undefined;
}

/**
 * - `claim`: takes the account, which fences whoever has it;
 * - `warm`: reads its images, while the other instance still runs it;
 * - `ask`: asks the other one for it;
 * - `release`: stops it, for the one that asks;
 * - `drop`: stops reading images, or a claim that has not come through and is not to any more, or what nobody is to run;
 * - `stay`: goes on as it is.
 */
export type Step = 'claim' | 'warm' | 'ask' | 'release' | 'drop' | 'stay';

/** So long a question may stay without an answer, ms. */
export const ANSWER_WITHIN_MS = 5_000;

/** What an instance does with an account next, by what it knows. */
export function nextStep(situation: Situation): Step {
  const { doing, generation, isGiven, isTwin = false } = situation;
  if (generation === undefined || doing === 'stopping') return 'stay';
  if (doing === 'running' && isTwin) return 'drop'; // nobody asks for it
  if (doing === 'running') return isGiven ? 'stay' : whenGivenAway(situation, generation);
  if (!isGiven) return doing === 'nothing' ? 'stay' : 'drop';
  return whenGiven(situation, generation);
}

/** Until somebody asks it goes on: the target restores the images first. */
function whenGivenAway({ me, word }: Situation, generation: number): Step {
  // One of an older generation is of a target that was superseded; a newer one has to become known here first.
  if (word?.ask?.generation === generation) return 'release';
  // A claim is tried for as long as Kafka can't be reached, and would fence whoever was given the account since.
  const isClaimed = word?.owner?.instance === me && word.isAnnounced !== true;
  return isClaimed ? 'stay' : 'drop';
}

function whenGiven(situation: Situation, generation: number): Step {
  const { me, doing, members, word, askedMs } = situation;
  const owner = word?.owner;
  // What was read until then stays: the rest is restored as it is taken over.
  const claim = doing === 'warming' ? 'drop' : 'claim';
  if (!owner || owner.instance === me) return claim;
  // Others are further: what is known here is old, and the owner is not who it was.
  if (owner.generation > generation) return 'stay';
  if (!members.has(owner.instance)) return claim;
  if (doing === 'nothing') return 'warm';
  if (doing === 'warming') return 'stay';
  if (askedMs === undefined) return 'ask';
  return askedMs >= ANSWER_WITHIN_MS ? 'claim' : 'stay';
}
