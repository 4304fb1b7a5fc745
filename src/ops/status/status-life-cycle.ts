import { boundedMap } from '../../core/bounded-map.ts';
import type { BoundedMap } from '../../core/bounded-map.ts';
import type { StatusChange } from '../../resources/orders/order-status.ts';
import { Durations, quantile } from './recent-figures.ts';
import { shortened } from './shortened.ts';
import type { LifeCycle, LifeCycleState } from './status-json.ts';

/** Maximum number of distinct statuses in a life cycle; further ones count as one state, `other`. */
const MAX_STATES = 16;
/** Maximum number of distinct pairs of states in a life cycle; changes between further pairs are only counted, all together. */
const MAX_CHANGES = 64;
/** Maximum number of subjects (orders, or parts of them such as fulfillments) whose current state and time of entry are stored. */
const MAX_ENTRIES = 20_000;
/** Maximum length of a status text, in characters. Longer ones are shortened, and count as the same status if they then are equal. */
export const MAX_STATUS = 200;
/** Maximum length of an order's key with the subject's id, in characters; longer ones are shortened as statuses are. */
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
 * Observes the life cycle of one status field: collects its states and the changes between them in bounded memory. A subject (an order or a
 * part of it) stays in a state from the change that entered it to the change that left it, by the API's timestamps where it has them, else
 * by commit times.
 */
export class LifeCycleModel {
  readonly #states = new Map<string, ObservedState>();
  readonly #transitions = new Map<string, Transition>();
  readonly #entries: BoundedMap<string, { readonly state: ObservedState; readonly at: number }>;
  /** Number of states that are statuses, at most {@link MAX_STATES}. */
  #statuses = 0;
  /** Number of changes that have no entry of their own in the transitions. */
  #others = 0;

  /**
   * @param maxEntries Maximum number of subjects whose entry into their current state is stored. With more subjects the oldest entries are
   *   dropped, so the longest stays are missing and medians are too short.
   */
  constructor(maxEntries = MAX_ENTRIES) {
    this.#entries = boundedMap(maxEntries);
  }

  /** Adds a status change of the order with the key `key`, whose event was committed at `committedAt`, in epoch ms. */
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

  /** Number of subjects whose entry into their current state is stored. */
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

  /** Returns the entry for changes between two states; undefined once {@link MAX_CHANGES} other pairs have one. */
  #transition(from: ObservedState, to: ObservedState): Transition | undefined {
    const id = `${from.place} ${to.place}`;
    const known = this.#transitions.get(id);
    if (known || this.#transitions.size === MAX_CHANGES) return known;
    const transition = { from, to, count: 0, durations: new Durations() };
    this.#transitions.set(id, transition);
    return transition;
  }
}
