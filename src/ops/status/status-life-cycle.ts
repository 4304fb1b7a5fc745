import { boundedMap } from '../../core/bounded-map.ts';
import type { BoundedMap } from '../../core/bounded-map.ts';
import type { StatusChange } from '../../streams/diff/status-changes.ts';
import { Durations, quantile } from './recent-figures.ts';
import { shortened } from './shortened.ts';
import type { LifeCycle, LifeCycleState } from './status-json.ts';

/** Maximum number of distinct statuses in a life cycle. All further ones are shown as one state, `other`. */
const MAX_STATES = 16;
/**
 * Maximum number of pairs of states whose changes are counted separately. Changes between all other pairs are counted in one common number.
 */
const MAX_CHANGES = 64;
/**
 * Maximum number of subjects (records, or parts of them) for which the current state and the time of entering it are
 * stored.
 */
const MAX_ENTRIES = 20_000;
/**
 * Maximum length of a status text, in characters. A longer status is shortened; statuses whose shortened texts are equal count as the same.
 */
export const MAX_STATUS = 200;
/**
 * Maximum length of the text that identifies a subject (the record's key and the subject's id), in characters. A longer text is shortened.
 */
const MAX_SUBJECT = 200;

interface ObservedState extends LifeCycleState {
  readonly place: number;
  count: number;
}

interface Transition {
  readonly from: ObservedState;
  readonly to: ObservedState;
  count: number;
  readonly durations: Durations;
}

/**
 * Observes the life cycle of one status field: collects its states and the changes between them in bounded memory. The times of changes are
 * the API's timestamps or, if a change has none, the time of the commit.
 */
export class LifeCycleModel {
  readonly #states = new Map<string, ObservedState>();
  readonly #transitions = new Map<string, Transition>();
  readonly #entries: BoundedMap<string, { readonly state: ObservedState; readonly at: number }>;
  /** Number of distinct statuses in `#states`, without the states `new`, `gone` and `other`. At most {@link MAX_STATES}. */
  #statuses = 0;
  /**
   * Number of status changes between pairs of states that have no entry in `#transitions`, because {@link MAX_CHANGES} other pairs have
   * one.
   */
  #others = 0;

  /**
   * @param maxEntries Maximum number of subjects (records, or parts of them that have a status) for which the time of the last status
   * change is stored. If it is too small, the longest times in a status are not measured, and medians are too short.
   */
  constructor(maxEntries = MAX_ENTRIES) {
    this.#entries = boundedMap(maxEntries);
  }

  /** Adds a status change of the record with the key `key`. `committedAt`: when the change was committed, in epoch ms. */
  add(key: string, change: StatusChange, committedAt: number): void {
    const at = change.changedAt ?? committedAt;
    const from = this.#stateOf(change.from, 'new');
    const to = this.#stateOf(change.to, 'gone');
    if (from.kind === 'new') from.count += 1;
    to.count += 1;

    const transition = this.#transition(from, to);
    if (transition) transition.count += 1;
    else this.#others += 1;

    const subject = shortened(`${key} ${change.subjectId ?? ''}`, MAX_SUBJECT);
    const entry = this.#entries.get(subject);
    if (entry?.state === from) transition?.durations.add(Math.max(0, at - entry.at));
    if (to.kind === 'gone') this.#entries.delete(subject);
    else this.#entries.set(subject, { state: to, at });
  }

  status(): Pick<LifeCycle, 'states' | 'changes' | 'others'> {
    return {
      states: [...this.#states.values()].map(({ kind, name, count }) => ({ kind, name, count })),
      changes: [...this.#transitions.values()].map(({ from, to, count, durations }) => ({
        from: from.place,
        to: to.place,
        count,
        medianMs: quantile([durations], 0.5),
      })),
      others: this.#others,
    };
  }

  /** Number of subjects (records, or parts with a status) for which the time of the change to their current state is stored. */
  get remembered(): number {
    return this.#entries.size();
  }

  #stateOf(status: string | null, none: 'new' | 'gone'): ObservedState {
    return status === null
      ? this.#state(none)
      : this.#state('state', shortened(status, MAX_STATUS));
  }

  #state(kind: ObservedState['kind'], name = ''): ObservedState {
    const id = `${kind} ${name}`;
    const known = this.#states.get(id);
    if (known) return known;
    if (kind === 'state') {
      if (this.#statuses === MAX_STATES) return this.#state('other');
      this.#statuses += 1;
    }
    const state = { kind, name, place: this.#states.size, count: 0 };
    this.#states.set(id, state);
    return state;
  }

  /**
   * Returns the entry that counts the changes between two states, and creates it if necessary. Undefined if {@link MAX_CHANGES} other pairs
   * have one.
   */
  #transition(from: ObservedState, to: ObservedState): Transition | undefined {
    const id = `${from.place} ${to.place}`;
    const known = this.#transitions.get(id);
    if (known || this.#transitions.size === MAX_CHANGES) return known;
    const transition = { from, to, count: 0, durations: new Durations() };
    this.#transitions.set(id, transition);
    return transition;
  }
}
