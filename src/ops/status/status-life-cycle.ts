import { boundedMap } from '../../core/bounded-map.ts';
import type { StatusChange } from '../../resources/orders/order-status.ts';
import { durations, quantile } from './recent-figures.ts';
import type { Durations } from './recent-figures.ts';
import { shortened } from './shortened.ts';
import type { LifeCycle, LifeCycleState } from './status-json.ts';

/** Statuses told apart; further ones are `other`. */
const MAX_STATES = 16;
/** Pairs of them told apart; further changes are only counted. */
const MAX_CHANGES = 64;
/** Subjects of which it is remembered when they entered their state, at most. */
const MAX_ENTRIES = 20_000;

/** Of a status that is longer, so many characters tell it apart. */
export const MAX_STATUS = 200;

/** Of an order's key and a subject's id together; no two of an order that are longer begin alike. */
const MAX_SUBJECT = 200;

interface State extends Pick<LifeCycleState, 'kind' | 'name'> {
  readonly place: number;
  count: number;
}

interface Passage {
  readonly from: State;
  readonly to: State;
  count: number;
  readonly stays: Durations;
}

/**
 * The life cycle of one status field. Learns states and changes as they come, in bounded memory. A stay lasts from the change that entered
 * a state to the one that left it, by the API's own times where it tells them. When more subjects wait in a state than can be remembered,
 * the longest stays are forgotten, and medians tend to be too short.
 */
export function lifeCycle(maxEntries = MAX_ENTRIES) {
  const states = new Map<string, State>();
  const passages = new Map<string, Passage>();
  const entries = boundedMap<string, { readonly state: State; readonly at: number }>(maxEntries);
  let statuses = 0;
  let others = 0;

  const stateOf = (kind: State['kind'], name = ''): State => {
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
  const passageOf = (from: State, to: State): Passage | undefined => {
    const id = `${from.place} ${to.place}`;
    const known = passages.get(id);
    if (known || passages.size === MAX_CHANGES) return known;
    const passage = { from, to, count: 0, stays: durations() };
    passages.set(id, passage);
    return passage;
  };
  const stateOfStatus = (status: string | null, none: 'new' | 'gone') =>
    status === null ? stateOf(none) : stateOf('state', shortened(status, MAX_STATUS));

  return {
    /** A change of it, in an order known by this key. */
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
      if (entry?.state === from) passage?.stays.add(Math.max(0, at - entry.at));
      if (to.kind === 'gone') entries.delete(subject);
      else entries.set(subject, { state: to, at });
    },
    status: (): Pick<LifeCycle, 'states' | 'changes' | 'others'> => ({
      states: [...states.values()].map(({ kind, name, count }) => ({ kind, name, count })),
      changes: [...passages.values()].map(({ from, to, count, stays }) => ({
        from: from.place,
        to: to.place,
        count,
        medianMs: quantile([stays], 0.5),
      })),
      others,
    }),
    /** How many subjects are remembered. */
    remembered: entries.size,
  };
}
