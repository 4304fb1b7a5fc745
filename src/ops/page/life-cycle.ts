import type { LifeCycle, Status } from '../status/status-json.ts';
import {
  changeName,
  changesOf,
  changesSeen,
  cycleName,
  isSameShape,
  shownCycle,
  stateName,
} from './cycles.ts';
import type { CycleChange } from './cycles.ts';
import { byId, html, keyedList, setText, show } from './dom.ts';
import { stateDiagram } from './state-diagram.ts';
import type { StateDiagram } from './state-diagram.ts';
import { compact, count, duration, fieldName, since } from './words.ts';

/**
 * Creates the view of the observed life cycle of a status field (such as an order's status), as a diagram and as a table, with buttons to
 * choose the field. Returns the function that updates it.
 */
export function lifeCycleView(): (status: Status) => void {
  const host = byId('diagram');
  const table = byId('life-table');
  const none = byId('life-none');
  const note = byId('life-since');
  let shown: string | undefined;
  let isChosen = false;
  const inputs = new Map<string, HTMLInputElement>();
  let newest: Status | undefined;
  let drawn: { readonly cycle: LifeCycle; readonly room: number } | undefined;
  let diagram: StateDiagram | undefined;

  const fields = keyedList<LifeCycle>({
    parent: byId('fields'),
    key: cycleName,
    make: (cycle) => {
      const input = html('input', { type: 'radio', name: 'field', value: cycleName(cycle) });
      inputs.set(input.value, input);
      input.addEventListener('change', () => {
        shown = input.value;
        isChosen = true;
        if (newest) update(newest);
      });
      const times = html('span', { class: 'times' });
      const title = fieldName(cycle.subject, cycle.field);
      const element = html('label', {}, input, html('span', {}, title, ' ', times));
      return { element, update: (now) => setText(times, compact(changesSeen(now))) };
    },
  });
  const rows = keyedList<CycleChange>({
    parent: byId('life-rows'),
    key: (change) => `${shown} ${changeName(change)}`,
    make: ({ from, to }) => {
      const times = html('td', { class: 'number' });
      const median = html('td', { class: 'number' });
      const name = (text: string) =>
        html('td', {}, html('bdi', { title: text }, ...breakable(text)));
      const element = html('tr', {}, name(stateName(from)), name(stateName(to)), times, median);
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
    fields(status.lifeCycles);
    const cycle = shownCycle(status.lifeCycles, shown, isChosen);
    if (!cycle) return;
    shown = cycleName(cycle);
    inputs.get(shown)!.checked = true;
    // Show the diagram's parent element first: the diagram is laid out for its width.
    show(host, cycle.changes.length > 0);
    show(table, cycle.changes.length > 0);
    draw(cycle);
    rows(changesOf(cycle));
    const seen = since(status.since, status.at);
    setText(note, `changes seen since ${seen}`);
    show(none, cycle.changes.length === 0 || cycle.others > 0);
    const others = `${count(cycle.others)} further changes are not told apart.`;
    setText(
      none,
      cycle.changes.length === 0 ? `No change of ${cycle.field} was seen since ${seen}.` : others,
    );
  };
  new ResizeObserver(() => newest && update(newest)).observe(byId('fields'));
  return update;
}

/** Splits the name of a status into nodes that allow a line break after each `_`. */
function breakable(text: string): Node[] {
  return text
    .split(/(?<=_)/)
    .flatMap((part, nth) => [...(nth > 0 ? [html('wbr')] : []), new Text(part)]);
}
