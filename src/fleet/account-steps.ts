import type { SchedulerLike } from 'rxjs';
import type { AccountRun } from './account-run.ts';
import type { FleetHooks } from './fleet-hooks.ts';
import type { AccountWord } from './fleet-record.ts';
import type { FleetWords } from './fleet-words.ts';
import { isQuarantined, isSuspect, lossesOf, MAX_LOSSES, PROBATION_MS } from './losses.ts';
import { nextStep } from './next-step.ts';
import type { Step } from './next-step.ts';
import type { OwnWords } from './own-words.ts';
import type { Twins } from './twins.ts';

/** What the group has decided, as far as it is known here. */
export interface Standing {
  readonly generation: number;
  /** Its instances. */
  readonly members: ReadonlySet<string>;
  /** By account, an instance. */
  readonly given: ReadonlyMap<string, string>;
  /** What nobody is to run, as another account has its API key. */
  readonly twins: Twins;
}

/** How far an account has come at this instance. Times are on the scheduler's clock. */
export interface Course {
  readonly run: AccountRun;
  /** When the owner was asked in this generation. */
  askedAt: number | undefined;
  /** When instances were lost that had just taken it; as of when it was taken here. */
  losses: readonly number[];
  /** When it was taken here. */
  takenAt: number | undefined;
  /** Since when the instance that had it has not run it any more, or may not; undefined while it does, and once it is read here. */
  silentSince: number | undefined;
  /** What it was quarantined upon: that is said once, and heard a little later. */
  judged: AccountWord | undefined;
}

export interface AccountStepsOptions {
  /** Names this process. */
  readonly instance: string;
  /** Of all accounts that are here. */
  readonly courses: ReadonlyMap<string, Course>;
  readonly fleet: FleetWords;
  readonly own: OwnWords;
  readonly fleetHooks: FleetHooks;
  readonly scheduler: SchedulerLike;
}

/** How many accounts begin at once: the first instance to come would take all, before others are there. */
const MAX_STARTING = 4;
/** How many accounts' images are read at once. */
const MAX_WARMING = 2;

/** Takes the next step with an account that is here, where there is one to take just now. */
export function accountSteps(
  options: AccountStepsOptions,
): (account: string, course: Course, standing: Standing) => void {
  const { instance, courses, fleet, own, fleetHooks, scheduler } = options;
  const now = () => scheduler.now();
  const wordOf = (account: string) => fleet.words.get(account);

  const counted = (is: (run: AccountRun) => boolean) =>
    [...courses.values()].filter(({ run }) => is(run)).length;
  const isFull = (step: Step): boolean =>
    (step === 'claim' && counted((run) => run.isStarting()) >= MAX_STARTING) ||
    (step === 'warm' && counted((run) => run.doing() === 'warming') >= MAX_WARMING);
  /** One at a time: which of them takes the instance down is plain then. */
  const isOnProbation = () =>
    [...courses.values()].some(
      ({ losses, takenAt = -Infinity }) => isSuspect(losses) && now() < takenAt + PROBATION_MS,
    );

  const quarantine = (account: string, course: Course): void => {
    const word = wordOf(account);
    if (course.judged === word) return;
    course.judged = word;
    course.silentSince = undefined;
    own.quarantined(account).then(
      () => fleetHooks.onQuarantined?.({ account }),
      () => (course.judged = undefined), // it is looked at again
    );
  };
  /** It was taken for lost here while it was out of reach. What it says as it lets go ends the quarantine: the account is taken anew. */
  const disprove = (account: string, { run }: Course): void => {
    if (run.doing() !== 'running') return;
    fleetHooks.onAccount?.({ account, step: 'drop' });
    void run.stop();
  };
  /** This instance has said that it takes it: whoever is to have it would ask, and wait for an answer. */
  const takeBack = (account: string, { run }: Course): void => {
    const owner = wordOf(account)?.owner?.instance ?? instance;
    if (owner !== instance || run.doing() !== 'nothing') return;
    own.released(account).catch(() => undefined); // it is taken a little later
  };
  /** Claims an account, unless it has taken down too many instances, or may and another one may as well. */
  const claim = (account: string, course: Course, { generation, members }: Standing): void => {
    const losses = lossesOf(wordOf(account), { me: instance, members, now: now() });
    if (losses.length >= MAX_LOSSES) return quarantine(account, course);
    if (isSuspect(losses) && isOnProbation()) return;
    fleetHooks.onAccount?.({ account, step: 'claim' });
    course.losses = losses;
    course.takenAt = now();
    // Not waited for: who does not hear of it claims the account as well, and is the only one to have it then.
    own.takes(account, { generation, losses }).catch(() => undefined);
    course.run.claim();
  };
  /** The account is to come here: from when it is asked for, or found to be without an owner, its handover takes time. */
  const watchSilence = (account: string, course: Course, { members }: Standing): void => {
    const word = wordOf(account);
    const last = word?.owner?.instance ?? word?.releasedBy;
    if (last === undefined || last === instance) return;
    const goesOn = word?.owner !== undefined && members.has(last);
    course.silentSince = goesOn ? course.askedAt : (course.silentSince ?? course.askedAt ?? now());
  };

  return (account, course, standing) => {
    const { generation, members, given, twins } = standing;
    const word = wordOf(account);
    const { run, askedAt } = course;
    const isGiven = given.get(account) === instance;
    if (isGiven && run.doing() !== 'running') watchSilence(account, course, standing);
    const step = nextStep({
      ...{ me: instance, generation, members, word, isGiven },
      isTwin: twins.has(account),
      doing: run.doing(),
      askedMs: askedAt === undefined ? undefined : now() - askedAt,
    });
    if (isQuarantined(word, now())) return disprove(account, course);
    if (step === 'stay' || isFull(step)) return;
    if (run.failure() && step !== 'drop') return;
    if (step === 'claim') return claim(account, course, standing);
    fleetHooks.onAccount?.({ account, step });
    if (step === 'warm') run.warm();
    else if (step === 'ask') {
      course.askedAt = now();
      // It is asked again: else the account is claimed without an answer.
      own.asks(account, generation, word!.owner!).catch(() => (course.askedAt = undefined));
    } else if (step === 'drop' && run.doing() === 'running') {
      void run.stop().then(() => takeBack(account, course));
    } else if (step === 'release') run.release();
    else void run.stop();
  };
}
