import type { LifeCycle, LifeCycleChange, Status } from '../status-json.ts';
import { byId, html, setText, show } from './dom.ts';
import { keyedList } from './keyed-list.ts';
import { isSameShape, stateDiagram, stateName } from './state-diagram.ts';
import type { StateDiagram } from './state-diagram.ts';
import { compact, count, duration, fieldName, since } from './words.ts';

/** A change, with the names of its states. */
interface NamedChange extends LifeCycleChange {
  readonly fromName: string;
  readonly toName: string;
}

/** The observed life cycle of one of the nine status fields, as a diagram and as a table. */
export function lifeCycleView(): (status: Status) => void {
  const host = byId('diagram');
  const table = byId('life-table');
  const none = byId('life-none');
  const note = byId('life-since');
  let chosen: string | undefined;
  let newest: Status | undefined;
  let drawn: { readonly cycle: LifeCycle; readonly room: number } | undefined;
  let diagram: StateDiagram | undefined;

  const fields = keyedList<LifeCycle>({
    parent: byId('fields'),
    key: nameOf,
    make: (cycle) => {
      const input = html('input', { type: 'radio', name: 'field', value: nameOf(cycle) });
      input.checked = nameOf(cycle) === chosen;
      input.addEventListener('change', () => {
        chosen = input.value;
        if (newest) update(newest);
      });
      const times = html('span', { class: 'times' });
      const title = fieldName(cycle.subject, cycle.field);
      const element = html('label', {}, input, html('span', {}, title, ' ', times));
      return { element, update: (now) => setText(times, compact(changesOf(now))) };
    },
  });
  const rows = keyedList<NamedChange>({
    parent: byId('life-rows'),
    key: ({ from, to }) => `${chosen} ${from} ${to}`,
    make: ({ fromName, toName }) => {
      const times = html('td', { class: 'number' });
      const median = html('td', { class: 'number' });
      const name = (text: string) =>
        html('td', {}, html('bdi', { title: text }, ...breakable(text)));
      const element = html('tr', {}, name(fromName), name(toName), times, median);
      return {
        element,
        update: (change) => {
          setText(times, count(change.count));
          setText(median, change.medianMs === null ? '–' : duration(change.medianMs));
        },
      };
    },
  });

  const draw = (cycle: LifeCycle) => {
    const room = host.clientWidth;
    if (drawn && diagram && drawn.room === room && isSameShape(drawn.cycle, cycle)) {
      return diagram.update(cycle);
    }
    diagram = cycle.changes.length > 0 ? stateDiagram(cycle, room) : undefined;
    host.replaceChildren(...(diagram ? [diagram.element] : []));
    drawn = { cycle, room };
  };
  const update = (status: Status) => {
    newest = status;
    chosen ??= nameOf(liveliest(status.lifeCycles));
    fields(status.lifeCycles);
    const cycle = status.lifeCycles.find((each) => nameOf(each) === chosen);
    if (!cycle) return;
    // The host has its width before the diagram is made for it.
    show(host, cycle.changes.length > 0);
    show(table, cycle.changes.length > 0);
    draw(cycle);
    rows(cycle.changes.map((change) => named(cycle, change)).sort((a, b) => b.count - a.count));
    const seen = since(status.since, status.at);
    setText(note, `changes seen since ${seen}`);
    show(none, cycle.changes.length === 0 || cycle.others > 0);
    const others = `${count(cycle.others)} further changes are not told apart.`;
    setText(none, cycle.changes.length === 0 ? `No change of ${cycle.field} was seen since ${seen}.` : others); // prettier-ignore
  };
  new ResizeObserver(() => newest && update(newest)).observe(byId('fields'));
  return update;
}

function nameOf({ subject, field }: LifeCycle): string {
  return `${subject} ${field}`;
}

/** A name that may go on in the next line behind each `_`. */
function breakable(text: string): Node[] {
  return text
    .split(/(?<=_)/)
    .flatMap((part, nth) => [...(nth > 0 ? [html('wbr')] : []), new Text(part)]);
}

function changesOf({ changes, others }: LifeCycle): number {
  return changes.reduce((sum, change) => sum + change.count, others);
}

/** Shown until somebody chooses: the one with the most changes; of several, the first. */
function liveliest(cycles: readonly LifeCycle[]): LifeCycle {
  return cycles.toSorted((a, b) => changesOf(b) - changesOf(a))[0]!;
}

function named({ states }: LifeCycle, change: LifeCycleChange): NamedChange {
  return {
    ...change,
    fromName: stateName(states[change.from]!),
    toName: stateName(states[change.to]!),
  };
}
