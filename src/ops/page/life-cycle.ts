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
import type { Row } from './dom.ts';
import { stateDiagram } from './state-diagram.ts';
import { compact, count, duration, fieldName, since } from './words.ts';

/**
 * Shows the observed life cycle of one status field (such as an order's status), as a diagram and as a table, with buttons to choose the
 * field.
 */
export class LifeCycleView {
  readonly #host = byId('diagram');
  readonly #table = byId('life-table');
  readonly #none = byId('life-none');
  readonly #note = byId('life-since');
  readonly #inputs = new Map<string, HTMLInputElement>();
  readonly #fields = keyedList<LifeCycle>({
    parent: byId('fields'),
    key: cycleName,
    make: (cycle) => this.#fieldButton(cycle),
  });
  readonly #rows = keyedList<CycleChange>({
    parent: byId('life-rows'),
    key: (change) => `${this.#shown} ${changeName(change)}`,
    make: changeRow,
  });
  #newest: Status | undefined;
  /** Name of the life cycle (the states of one status field) that the page shows. Undefined before the first one. */
  #shown: string | undefined;
  /** Whether the user chose the life cycle that the page shows. */
  #isChosen = false;
  #drawn:
    | { cycle: LifeCycle; room: number; diagram: ReturnType<typeof stateDiagram> | undefined }
    | undefined;

  constructor() {
    new ResizeObserver(() => this.#newest && this.update(this.#newest)).observe(byId('fields'));
  }

  readonly update = (status: Status): void => {
    this.#newest = status;
    this.#fields(status.lifeCycles);
    const cycle = shownCycle(status.lifeCycles, this.#shown, this.#isChosen);
    if (!cycle) return;
    this.#shown = cycleName(cycle);
    this.#inputs.get(this.#shown)!.checked = true;
    const isEmpty = cycle.changes.length === 0;
    // Show the diagram's parent element first: the diagram is laid out for its width.
    show(this.#host, !isEmpty);
    show(this.#table, !isEmpty);
    this.#draw(cycle);
    this.#rows(changesOf(cycle));
    const seen = since(status.since, status.at);
    setText(this.#note, `changes seen since ${seen}`);
    show(this.#none, isEmpty || cycle.others > 0);
    const others = `${count(cycle.others)} further changes are not told apart.`;
    setText(this.#none, isEmpty ? `No change of ${cycle.field} was seen since ${seen}.` : others);
  };

  #draw(cycle: LifeCycle): void {
    const room = this.#host.clientWidth;
    const drawn = this.#drawn;
    if (drawn?.diagram && drawn.room === room && isSameShape(drawn.cycle, cycle)) {
      return drawn.diagram.update(cycle);
    }
    const diagram = cycle.changes.length > 0 ? stateDiagram(cycle, room) : undefined;
    this.#host.replaceChildren(...(diagram ? [diagram.element] : []));
    this.#drawn = { cycle, room, diagram };
  }

  #fieldButton(cycle: LifeCycle): Row<LifeCycle> {
    const input = html('input', { type: 'radio', name: 'field', value: cycleName(cycle) });
    this.#inputs.set(input.value, input);
    input.addEventListener('change', () => {
      this.#shown = input.value;
      this.#isChosen = true;
      if (this.#newest) this.update(this.#newest);
    });
    const times = html('span', { class: 'times' });
    const title = fieldName(cycle.subject, cycle.field);
    const element = html('label', {}, input, html('span', {}, title, ' ', times));
    return { element, update: (now) => setText(times, compact(changesSeen(now))) };
  }
}

function changeRow({ from, to }: CycleChange): Row<CycleChange> {
  const times = html('td', { class: 'number' });
  const median = html('td', { class: 'number' });
  const name = (text: string) => html('td', {}, html('bdi', { title: text }, ...breakable(text)));
  const element = html('tr', {}, name(stateName(from)), name(stateName(to)), times, median);
  return {
    element,
    update: (change) => {
      setText(times, count(change.count));
      setText(median, change.medianMs === null ? '–' : duration(change.medianMs));
    },
  };
}

/** Splits the name of a status so that a line may break after each `_`. */
function breakable(text: string): Node[] {
  return text
    .split(/(?<=_)/)
    .flatMap((part, nth) => [...(nth > 0 ? [html('wbr')] : []), new Text(part)]);
}
