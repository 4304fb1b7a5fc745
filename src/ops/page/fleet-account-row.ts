import type { FleetAccountStatus } from '../status/fleet-status-json.ts';
import { html, setAttributes, setText, show } from './dom.ts';
import { besideState, healthOf } from './fleet-health.ts';
import { stateName } from './fleet-states.ts';
import { gauge } from './gauge.ts';
import type { Row } from './keyed-list.ts';
import { ago, duration, rate } from './words.ts';

/** An account, when it was told of, and by which instance. */
export interface ToldAccount extends FleetAccountStatus {
  readonly at: number;
  readonly instance: string;
}

/** Name, state and instance; lag, throughput and quota; and what is wrong. Its name leads to its page, if that is here. */
export function accountRow({ account }: ToldAccount): Row<ToldAccount> {
  const link = html('a', {}, account);
  const state = html('p', { class: 'state' });
  const owner = html('p', { class: 'owner' });
  const lag = figure('median lag');
  const looked = figure('looked', true);
  const flow = figure('events/s');
  const bar = gauge(`Quota of ${account}`);
  const quotaText = html('p', { class: 'note' });
  const quota = html('div', { class: 'quota' }, bar.element, quotaText);
  const untold = html('p', { class: 'untold note' });
  const problem = html('p', { class: 'problem' });
  const head = html('div', { class: 'head' }, html('h3', {}, link), state);
  const measures = [lag.element, looked.element, flow.element, quota];
  const element = html('li', {}, head, owner, ...measures, untold, problem);
  return {
    element,
    update: (told) => {
      const { at, since, figures, isHere, instance } = told;
      setAttributes(element, { 'data-health': healthOf(told, at) });
      if (isHere) setAttributes(link, { href: `accounts/${encodeURIComponent(account)}` });
      else link.removeAttribute('href');
      setText(state, stateText(told, at - since));
      setText(owner, ownerText(told, instance));
      const text = besideState(told);
      setText(problem, text);
      show(problem, text !== '');
      for (const measure of measures) show(measure, figures !== null);
      show(untold, figures === null);
      setText(untold, told.owner === null ? '' : `${told.owner} has not reported its figures`);
      if (!figures) return;
      lag.update(figures.lagMs === null ? '–' : duration(figures.lagMs));
      // What another instance has told holds until it tells otherwise.
      looked.update(figures.lookedAt === null ? 'not yet' : ago(figures.at - figures.lookedAt));
      flow.update(rate(figures.eventsPerSecond));
      const { name = 'quota', used = 0, limit = 0 } = figures.quota ?? {};
      const use = figures.quota ? `${name}: ${used} of ${limit}` : 'no quota known yet';
      bar.update(used, limit, use);
      setText(quotaText, use);
    },
  };
}

function stateText({ state, figures }: ToldAccount, ms: number): string {
  if (state === 'running' && figures?.firstRead) {
    const { read, total } = figures.firstRead;
    return `initial snapshot, ${total > 0 ? Math.floor((100 * read) / total) : 0} %`;
  }
  if (state === 'running' && figures?.ready === false) return 'running, but not ready';
  return `${stateName(state)} for ${ago(Math.max(1_000, ms)).replace(' ago', '')}`;
}

function ownerText({ owner }: ToldAccount, instance: string): string {
  if (owner === null) return 'on no instance';
  return owner === instance ? `on ${owner}, this one` : `on ${owner}`;
}

/** A figure with its unit; of an age what it is the age of, which goes before it. */
function figure(
  unit: string,
  unitFirst = false,
): { readonly element: HTMLElement; readonly update: (text: string) => void } {
  const value = html('span', { class: 'value' });
  const parts = [value, ' ', html('span', { class: 'unit' }, unit)];
  const element = html('p', { class: 'figure' }, ...(unitFirst ? parts.reverse() : parts));
  return { element, update: (text) => setText(value, text) };
}
