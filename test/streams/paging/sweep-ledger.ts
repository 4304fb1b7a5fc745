import { readingRules } from '../../../src/description/levels.ts';
import type { ReadingRules } from '../../../src/description/levels.ts';
import { listNamed } from '../../../src/description/description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { jsonsOf } from '../../support/records.ts';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import {
  limitJudged,
  NO_SWEEP,
  nextSweep,
  pollsCompleted,
  sweepAfter,
} from '../../../src/streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../../src/streams/paging/sweep-progress.ts';
import type { KnownRecords, UnseenSlice } from '../../../src/streams/paging/missing-keys.ts';
import type { SweepStep } from '../../../src/streams/paging/sweeps.ts';
import { keyOfId } from './moving-list.ts';

/** Numbers of sweeps, as the store has them for each key. */
interface Mark {
  seen: number;
  read: number;
}

/** What whoever deals with the steps of sweeps keeps: how far they are, and a mark for each key. */
export class SweepLedger implements KnownRecords {
  progress: SweepProgress = NO_SWEEP;
  readonly #marks = new Map<string, Mark>();
  readonly #stretch: number;
  /** Whether the list has polls. */
  isPolled = false;
  /** Records a page. */
  pageSize = 4;
  /** Rules for the proofs of the list's readings. Default: those of a list that is paged by offset and has a total. */
  rules: ReadingRules = readingRules(listNamed(WINE, 'orders'));
  /** Records without a usable key, at these places of each page. */
  rejectedAt: readonly number[] = [];

  /** @param stretch How many keys are looked at at once. */
  constructor(keys: Iterable<string> = [], stretch = 500) {
    this.#stretch = stretch;
    this.see(keys);
  }

  /** Something other than a sweep has read these keys. */
  see(keys: Iterable<string>): void {
    for (const key of keys) this.#mark(key, false);
  }

  /** Deals with a step at a time; gives the keys that it shows to be gone. */
  keep(step: SweepStep, now: number, proofMs = 0): string[] {
    const gone = this.#deal(step, now, proofMs);
    this.#progressTo({ ...this.progress, keptAt: now });
    return gone;
  }

  #deal(step: SweepStep, now: number, proofMs: number): string[] {
    switch (step.kind) {
      case 'page': {
        const { page, isConsistent, ordered, beganAt } = step;
        const sweep =
          this.progress.phase === 'reading' ? this.progress : nextSweep(this.progress, beganAt);
        const keys = keysIn(jsonsOf(page.answer.data));
        const freshKeys = [...keys].filter((key) => !this.#isRead(key, sweep.number));
        this.#progressTo(
          sweepAfter(sweep, page, {
            ...{ fresh: freshKeys.length, freshKeys, leftOut: 0, rejectedAt: this.rejectedAt },
            ...{
              isConsistent,
              ordered,
              isPolled: this.isPolled,
              rules: this.rules,
              pageSize: this.pageSize,
              now,
              proofMs,
            },
          }),
        );
        for (const key of keys) this.#mark(key, true);
        return [];
      }
      case 'asked':
        return this.#hear(step);
      case 'spared':
        for (const key of step.keys) this.#mark(key, false);
        return [];
      case 'asked-once':
        this.#progressTo({ ...this.progress, askedAt: now });
        return [];
      case 'judged':
        this.#progressTo(limitJudged(this.progress, step.verdict));
        return [];
      case 'polled':
        this.#progressTo(pollsCompleted(this.progress, now, proofMs));
        return [];
      case 'absent':
        return this.#forget(step.keys, step.since);
      case 'end':
        this.#progressTo({ ...this.progress, phase: 'done' });
        return [];
    }
  }

  #hear({ key, since, answer, again }: Extract<SweepStep, { kind: 'asked' }>): string[] {
    const found = keysIn(jsonsOf(answer?.data ?? []));
    const isGone = answer?.data.length === 0;
    this.see(found);
    if (again) return isGone ? this.#forget([key], since) : [];
    if (!isGone) this.see([key]); // found, or nobody can tell
    this.#progressTo({ ...this.progress, askedUpTo: key });
    return [];
  }

  keys(): string[] {
    return [...this.#marks.keys()];
  }

  count(): number {
    return this.#marks.size;
  }

  unseen(since: number, after = ''): UnseenSlice {
    const rest = this.keys()
      .sort()
      .filter((key) => key > after);
    const looked = rest.slice(0, this.#stretch);
    const keys = looked.filter((key) => this.isUnseen(key, since));
    return { keys, next: rest.length > looked.length ? looked.at(-1) : undefined };
  }

  #isRead(key: string, sweep: number): boolean {
    return this.#marks.get(key)?.read === sweep;
  }

  isUnseen(key: string, since: number): boolean {
    const mark = this.#marks.get(key);
    return mark !== undefined && mark.seen < since;
  }

  #forget(keys: readonly string[], since: number): string[] {
    const gone = keys.filter((key) => this.isUnseen(key, since));
    for (const key of gone) this.#marks.delete(key);
    return gone;
  }

  #mark(key: string, bySweep: boolean): void {
    const { number } = this.progress;
    const mark = this.#marks.get(key) ?? { seen: 0, read: 0 };
    this.#marks.set(key, { seen: number, read: bySweep ? number : mark.read });
  }

  /** As a store gives it back. */
  #progressTo(progress: SweepProgress): void {
    this.progress = JSON.parse(JSON.stringify(progress)) as SweepProgress;
  }
}

function keysIn(data: readonly JsonValue[]): Set<string> {
  return new Set(data.flatMap((record) => keyOfId(record) ?? []));
}
