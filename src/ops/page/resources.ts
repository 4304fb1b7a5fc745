import type {
  CertifiedStatus,
  ResourceStatus,
  SeriesStatus,
  Status,
} from '../status/status-json.ts';
import { DEPENDENCIES, dependencyOf } from '../status/causes.ts';
import { chart } from './chart.ts';
import type { ChartOptions } from './chart.ts';
import { byId, gauge, html, keyedList, setAttributes, setText, show } from './dom.ts';
import type { Row } from './dom.ts';
import { ago, compact, count, duration, percent, plural, rate, since } from './words.ts';

interface DatedResource extends ResourceStatus {
  readonly at: number;
}

/** Returns a function that updates the view of the lists: state, lag, throughput and a few facts of each. */
export function resourcesView(): (status: Status) => void {
  const list = keyedList<DatedResource>({
    parent: byId('resources'),
    key: ({ resource }) => resource,
    make: resourceRow,
  });
  return ({ resources, at }) => list(resources.map((resource) => ({ ...resource, at })));
}

function resourceRow({ resource }: DatedResource): Row<DatedResource> {
  const state = html('p', { class: 'state' });
  const bar = gauge(`Initial snapshot of ${resource}`);
  const progress = html('p', { class: 'note' });
  const reading = html('div', { class: 'reading' }, bar.element, progress);
  const lag = figure('lag', { lines: [{ colour: '--accent', filled: true }], leastTop: 2_000 });
  const flow = figure('throughput', {
    lines: [{ colour: '--muted', filled: true }, { colour: '--accent' }],
    leastTop: 1,
    compressed: true,
  });
  const facts = html('dl', { class: 'facts' });
  const fact = keyedList<Fact>({ parent: facts, key: ({ name }) => name, make: factRow });
  const head = html('div', { class: 'head' }, html('h3', {}, resource), state, reading);
  const element = html('li', {}, head, lag.element, flow.element, facts);
  return {
    element,
    update: (dated) => {
      setAttributes(element, { 'data-state': dated.state });
      setText(state, stateText(dated));
      const { firstRead, freshness, perSecond, series } = dated;
      show(reading, firstRead !== null && !firstRead.done);
      if (firstRead) {
        const text = progressText(firstRead);
        setText(progress, text);
        bar.update(firstRead.read, firstRead.total, text);
      }
      const { lastMs, p50Ms, p95Ms } = freshness;
      lag.update(
        p50Ms === null ? '–' : duration(p50Ms),
        'median lag',
        p95Ms === null || lastMs === null
          ? isUntimed(series)
            ? 'its records carry no time'
            : 'no changes lately'
          : `95 % within ${duration(p95Ms)}; last ${duration(lastMs)}`,
      );
      lag.draw(series, [series.lagMs], lagText(resource, series), duration);
      const most = Math.max(...series.recordsPerSecond, ...series.eventsPerSecond);
      flow.update(rate(perSecond.events), 'events/s', `${rate(perSecond.records)} records read/s`);
      flow.draw(
        series,
        [series.recordsPerSecond, series.eventsPerSecond],
        `Throughput of ${resource} over five minutes, compressed: at most ${rate(most)} records or events a second, now ${rate(perSecond.records)} records and ${rate(perSecond.events)} events`,
        (value) => `${rate(value)}/s`,
      );
      fact(factsOf(dated));
    },
  };
}

/** Whether events were published in the last five minutes, but none of them shows when its record was changed. */
function isUntimed({ eventsPerSecond, lagMs }: SeriesStatus): boolean {
  return eventsPerSecond.some((each) => each > 0) && lagMs.every((ms) => ms === null);
}

function stateText({ state, retry, at, firstRead, commitBeganAt }: DatedResource): string {
  const next = retry && retry.nextAt > at ? `next in ${duration(retry.nextAt - at)}` : 'now';
  switch (state) {
    case 'taking-over':
      return 'being claimed or catching up';
    case 'first-read':
      return `initial snapshot, ${percent(firstRead?.read ?? 0, firstRead?.total ?? 0)}`;
    case 'following':
      return 'following';
    case 'waiting':
      if (!retry) return `waiting for Kafka for ${duration(at - (commitBeganAt ?? at))}`;
      return `waiting for ${DEPENDENCIES[dependencyOf(retry.what)]}: try ${count(retry.count)}, ${next}`;
    case 'failed':
      return `can't go on; try ${count(retry?.count ?? 0)}, ${next}`;
  }
}

function progressText(initialSnapshot: NonNullable<ResourceStatus['firstRead']>): string {
  const { read, total, perSecond, leftMs } = initialSnapshot;
  const pace = perSecond === null ? '' : `, ${rate(perSecond)}/s`;
  const left = leftMs === null ? '' : `, ${duration(leftMs)} left`;
  return `${count(read)} of ${count(total)}${pace}${left}`;
}

function lagText(resource: string, { lagMs }: SeriesStatus): string {
  const lags = lagMs.filter((ms) => ms !== null);
  if (lags.length === 0) return `Lag of ${resource}: no change in the last five minutes`;
  return `Lag of ${resource}, the slowest change each five seconds: last ${duration(lags.at(-1)!)}, at most ${duration(Math.max(...lags))} in five minutes`;
}

interface Fact {
  readonly name: string;
  readonly value: string;
  readonly isBad?: boolean;
  readonly isWide?: boolean;
}

function factRow({ name }: Fact): Row<Fact> {
  const value = html('dd');
  const element = html('div', {}, html('dt', {}, name), value);
  return {
    element,
    update: (fact) => {
      setText(value, fact.value);
      const { isBad = false, isWide = false } = fact;
      setAttributes(element, { 'data-bad': String(isBad), 'data-wide': String(isWide) });
    },
  };
}

function factsOf(dated: DatedResource): Fact[] {
  const { known, lookedAt, level, swept, requests, transactionMs, schemaId, at } = dated;
  const { ok, refused, failed, unanswered } = requests;
  const bad = refused + failed + unanswered;
  const letters = Object.values(dated.deadLetters).reduce((sum, each) => sum + each, 0);
  return [
    { name: 'looked', value: lookedAt === null ? 'not yet' : ago(at - lookedAt) },
    { name: 'records', value: known === null ? '–' : compact(known) },
    {
      name: 'asked',
      value: `${count(ok + bad)} a min${bad > 0 ? `, ${count(bad)} bad` : ''}`,
      isBad: bad > 0,
    },
    { name: 'swept', value: swept ? `${ago(at - swept.at)}, ${swept.proof}` : 'not yet' },
    { name: 'commit', value: transactionMs === null ? '–' : duration(transactionMs) },
    { name: 'schema', value: schemaId === null ? '–' : `id ${schemaId}` },
    ...(letters > 0
      ? [{ name: 'dead letters', value: plural(letters, 'record'), isBad: true }]
      : []),
    certifiedFact(dated),
    ...(level === null ? [] : [{ name: 'level', value: level.inWords, isWide: true }]),
  ];
}

/**
 * Returns the line of the status page about a list's newest certificate. The line is marked as a problem if the newest full scan got no
 * certificate because the topic's number of partitions has changed.
 */
function certifiedFact({ certified, uncertified, at }: DatedResource): Fact {
  // If the newest certificate is too recent, that is no problem: a later scan will be certified.
  const isBad = uncertified === 'partitions';
  const value = certified ? certifiedText(certified, at) : 'not yet';
  const since = isBad ? '; not the full scan after it: the topic has other partitions' : '';
  return { name: 'certified', value: `${value}${since}`, isBad, isWide: true };
}

/** Formats a certificate as the number of live keys, the API's total, the proof and the time: `10,002 of 10,002, exact, 14:03:07`. */
function certifiedText(certified: CertifiedStatus, now: number): string {
  const { at, total, records, proof, whyNotExact } = certified;
  const proven = whyNotExact === null ? proof : `${proof} (${whyNotExact})`;
  return `${count(records)} of ${total === null ? '?' : count(total)}, ${proven}, ${since(at, now)}`;
}

function figure(name: string, options: ChartOptions) {
  const value = html('span', { class: 'value' });
  const unit = html('span', { class: 'unit' });
  const note = html('p', { class: 'note' });
  const top = html('span', { class: 'peak' });
  const plot = chart(options);
  const picture = html('div', { class: 'picture' }, plot.element, top);
  const element = html(
    'div',
    { class: `measure ${name}` },
    html('p', { class: 'figure' }, value, ' ', unit),
    note,
    picture,
  );
  return {
    element,
    update: (text: string, unitText: string, noteText: string) => {
      setText(value, text);
      setText(unit, unitText);
      setText(note, noteText);
    },
    /** Draws a line for each element of `values`; `text` describes the chart for screen readers, `inWords` formats the highest value. */
    draw: (
      { endsAt, everyMs }: SeriesStatus,
      values: readonly (readonly (number | null)[])[],
      text: string,
      inWords: (value: number) => string,
    ) => {
      const length = values[0]?.length ?? 0;
      const times = Array.from({ length }, (_, nth) => endsAt - (length - 1 - nth) * everyMs);
      plot.update(times, values, text);
      const most = Math.max(...values.flat().map((value) => value ?? 0));
      setText(top, most > 0 ? `peak ${inWords(most)}` : '');
    },
  };
}
