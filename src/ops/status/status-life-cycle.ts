import { boundedMap } from '../../core/bounded-map.ts';
import type { StatusChange } from '../../resources/orders/order-status.ts';
import { durations, quantile } from './recent-figures.ts';
import type { Durations } from './recent-figures.ts';
import { shortened } from './shortened.ts';
import type { LifeCycle, LifeCycleState } from './status-json.ts';

/** Maximum number of distinct statuses in a life cycle; further ones count as one state, `other`. */
const MAX_STATES = 16;
/**
 * Maximum number of distinct pairs of states (before and after a change) in a life cycle. Changes between further pairs are only counted,
 * all together.
 */
const MAX_CHANGES = 64;
/**
 * Maximum number of subjects (orders or parts of them, such as fulfillments) whose current state and time of entry are stored; bounds
 * memory.
 */
const MAX_ENTRIES = 20_000;

/** Maximum length of a status text, in characters. Longer ones are shortened, and count as the same status if they then are equal. */
export const MAX_STATUS = 200;

/**
 * Maximum length of the text that identifies a subject, an order's key plus the subject's id, in characters. Longer ones are shortened, and
 * count as one subject if they then are equal.
 */
const MAX_SUBJECT = 200;

interface ObservedState extends Pick<LifeCycleState, 'kind' | 'name'> {
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
 *
 * @param maxEntries Maximum number of subjects whose entry into their current state is stored. With more subjects the oldest entries are
 *   dropped, so the longest stays are missing and medians are too short. Default 20,000.
 */
export function lifeCycle(maxEntries = MAX_ENTRIES) {
  const states = new Map<string, ObservedState>();
  const passages = new Map<string, Transition>();
  const entries = boundedMap<string, { readonly state: ObservedState; readonly at: number }>(
    maxEntries,
  );
  let statuses = 0;
  let others = 0;

  const stateOf = (kind: ObservedState['kind'], name = ''): ObservedState => {
    const id = `${kind} ${name}`;
    const known = states.get(id);
    if (known) return known;
    if (kind === 'state') {
      if (statuses === MAX_STATES) return stateOf('other');
      statuses += 1;
    }
    const state = { kind, name, place: states.size, count: 0 };
    states.set(id, state);
    return state;
  };
  const passageOf = (from: ObservedState, to: ObservedState): Transition | undefined => {
    const id = `${from.place} ${to.place}`;
    const known = passages.get(id);
    if (known || passages.size === MAX_CHANGES) return known;
    const passage = { from, to, count: 0, durations: durations() };
    passages.set(id, passage);
    return passage;
  };
  const stateOfStatus = (status: string | null, none: 'new' | 'gone') =>
    status === null ? stateOf(none) : stateOf('state', shortened(status, MAX_STATUS));

  return {
    /**
     * Adds a status change of the order with the key `key` to the life cycle; `committedAt`: when its event was committed, in ms since the
     * epoch.
     */
    add: (key: string, change: StatusChange, committedAt: number): void => {
      const at = change.changedAt ?? committedAt;
      const from = stateOfStatus(change.from, 'new');
      const to = stateOfStatus(change.to, 'gone');
      if (from.kind === 'new') from.count += 1;
      to.count += 1;

      const passage = passageOf(from, to);
      if (passage) passage.count += 1;
      else others += 1;

      const subject = shortened(`${key} ${change.subjectId ?? ''}`, MAX_SUBJECT);
      const entry = entries.get(subject);
      if (entry?.state === from) passage?.durations.add(Math.max(0, at - entry.at));
      if (to.kind === 'gone') entries.delete(subject);
      else entries.set(subject, { state: to, at });
    },
    status: (): Pick<LifeCycle, 'states' | 'changes' | 'others'> => ({
      states: [...states.values()].map(({ kind, name, count }) => ({ kind, name, count })),
      changes: [...passages.values()].map(({ from, to, count, durations }) => ({
        from: from.place,
        to: to.place,
        count,
        medianMs: quantile([durations], 0.5),
      })),
      others,
    }),
    /** Returns the number of subjects whose entry into their current state is stored. */
    remembered: entries.size,
  };
}
