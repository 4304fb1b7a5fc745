import { Graph, layout } from '@dagrejs/dagre';
import type { EdgeLabel, GraphLabel, NodeLabel, Point } from '@dagrejs/dagre';
import type { LifeCycle, LifeCycleChange, LifeCycleState } from '../status/status-json.ts';
import { stateName } from './cycles.ts';
import { setAttributes, setText, svg } from './dom.ts';
import { compact, count, duration } from './words.ts';

const STATE_HEIGHT = 42;
const MAX_NAME = 22;
/** Approximate width of a character in the names of states, and in the labels of arrows, in px. */
const [NAME_CHARACTER, NOTE_CHARACTER] = [8.2, 6.3];
/** Size of the label of an arrow, in px. It has space for `99.9K · 59 min`, because the figures can grow after the layout. */
const LABEL = { width: 14 * NOTE_CHARACTER, height: 20 };

/**
 * Draws the life cycle of a status field as SVG: its states as boxes, the changes between them as arrows.
 *
 * @param room Available width in px. A diagram from left to right that does not fit is drawn from top to bottom.
 */
export function stateDiagram(cycle: LifeCycle, room: number) {
  const wide = laidOut(cycle, 'LR');
  const graph = (wide.graph().width ?? 0) <= room ? wide : laidOut(cycle, 'TB');

  const { width = 0, height = 0 } = graph.graph();
  const element = svg('svg', {
    viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
    width: Math.ceil(width),
    height: Math.ceil(height),
    role: 'img',
  });
  const arrow = svg('path', { d: 'M0 0 L8 4 L0 8 Z', class: 'arrow-head' });
  const marker = svg(
    'marker',
    {
      id: 'arrow',
      markerWidth: 8,
      markerHeight: 8,
      refX: 7,
      refY: 4,
      orient: 'auto',
      markerUnits: 'userSpaceOnUse',
    },
    arrow,
  );
  element.append(svg('defs', {}, marker));
  // Arrows first, so that boxes and labels are drawn above them.
  const arrows = cycle.changes.map(({ from, to }) => arrowOf(graph.edge(String(from), String(to))));
  element.append(...arrows.map(({ path }) => path), ...arrows.map(({ label }) => label));
  const boxes = cycle.states.map((state, place) => boxOf(state, graph.node(String(place))));
  element.append(...boxes.map(({ box }) => box));

  /**
   * Updates the figures in the drawn diagram. `now` is the life cycle to show: its states and changes must be those of the drawn one, in
   * the same order.
   */
  const update = (now: LifeCycle) => {
    setAttributes(element, { 'aria-label': sentence(now) });
    now.changes.forEach((change, nth) => arrows[nth]?.update(change));
    now.states.forEach((state, nth) => boxes[nth]?.update(state));
  };
  update(cycle);
  return { element, update };
}

function laidOut(cycle: LifeCycle, rankdir: 'LR' | 'TB'): Graph<GraphLabel, NodeLabel, EdgeLabel> {
  const graph = new Graph<GraphLabel, NodeLabel, EdgeLabel>();
  const across = rankdir === 'LR' ? 24 : 34;
  graph.setGraph({ rankdir, nodesep: 26, edgesep: 16, ranksep: across, marginx: 10, marginy: 10 });
  for (const [place, state] of cycle.states.entries()) {
    const characters = Math.max(Math.min(stateName(state).length, MAX_NAME), 9);
    const width = characters * NAME_CHARACTER + 22;
    graph.setNode(String(place), { width, height: STATE_HEIGHT });
  }
  for (const { from, to } of cycle.changes) {
    graph.setEdge(String(from), String(to), { ...LABEL, labelpos: 'c' });
  }
  layout(graph);
  return graph;
}

function boxOf(state: LifeCycleState, { x = 0, y = 0, width, height }: NodeLabel) {
  const name = stateName(state);
  const short = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1)}…` : name;
  const entered = svg('text', { x, y: y + 13, class: 'count' });
  const box = svg(
    'g',
    { class: `box ${state.kind}` },
    svg('title', {}, name),
    svg('rect', { x: x - width / 2, y: y - height / 2, width, height, rx: 9 }),
    svg('text', { x, y: y - 4, class: 'name' }, short),
    entered,
  );
  return {
    box,
    update: (now: LifeCycleState) =>
      setText(entered, `${compact(now.count)} ${now.kind === 'new' ? 'left' : 'entered'}`),
  };
}

function arrowOf({ points = [], x = 0, y = 0 }: EdgeLabel) {
  const path = svg('path', { d: smooth(points), class: 'arrow', 'marker-end': 'url(#arrow)' });
  const text = svg('text', { x, y: y + 4 });
  const back = svg('rect', { y: y - 10, height: LABEL.height, rx: 5 });
  const label = svg('g', { class: 'label' }, back, text);
  return {
    path,
    label,
    update: (change: LifeCycleChange) => {
      const words = changeText(change);
      setText(text, words);
      const width = words.length * NOTE_CHARACTER + 10;
      setAttributes(back, { x: x - width / 2, width });
      setAttributes(path, {
        'stroke-width': (1.2 + Math.log10(Math.max(1, change.count))).toFixed(1),
      });
    },
  };
}

function changeText({ count: times, medianMs }: LifeCycleChange): string {
  return medianMs === null ? compact(times) : `${compact(times)} · ${duration(medianMs)}`;
}

/**
 * Returns the SVG path of a smooth curve from the first to the last point. It is bent towards the points in between, but need not touch
 * them.
 */
function smooth(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (!first) return '';
  const at = ({ x, y }: Point) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const parts = rest.slice(0, -1).map((point, nth) => {
    const next = rest[nth + 1]!;
    const isLast = nth === rest.length - 2;
    const end = isLast ? next : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    return `Q${at(point)} ${at(end)}`;
  });
  const last = rest.at(-1);
  return `M${at(first)} ${parts.join(' ') || (last ? `L${at(last)}` : '')}`;
}

function sentence({ field, states, changes }: LifeCycle): string {
  const most = changes.toSorted((a, b) => b.count - a.count)[0];
  const named = (place: number) => stateName(states[place]!).slice(0, MAX_NAME);
  const often = most
    ? ` The most frequent, ${count(most.count)} times: from ${named(most.from)} to ${named(most.to)}.`
    : '';
  return `State diagram of ${field}: ${states.length} states, ${changes.length} kinds of changes.${often} All of it is in the table below.`;
}
