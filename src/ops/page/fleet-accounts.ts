// The list of a fleet's accounts: a row with state, owner and figures for each, and a filter for which are shown.

import type { FleetAccountStatus, FleetStatus } from '../status/status-json.ts';
import { byId, gauge, html, keyedList, setAttributes, setText, show } from './dom.ts';
import type { Row } from './dom.ts';
import { stateDetail, healthOf, rank } from './fleet-verdict.ts';
import { ACCOUNT_STATE_NAMES } from './fleet-overview.ts';
import { ago, count, duration, percent, rate } from './words.ts';

/** Filters for the list of accounts, each with the text to show when no account matches. */
const CHOICES = {
  all: { label: 'all', none: 'No account is known yet.', has: () => true },
  wrong: {
    label: 'not well',
    none: 'Every account runs and is ready.',
    has: (each: ReportedAccount) => healthOf(each, each.at) !== 'good',
  },
  here: {
    label: 'run here',
    none: 'This instance runs no account.',
    has: ({ isHere }: ReportedAccount) => isHere,
  },
} as const;
type Choice = keyof typeof CHOICES;

/**
 * Returns a function that updates the list of accounts. Each account has a row. The rows are sorted by health, the worst first, and by name
 * within the same health.
 */
export function fleetAccountsView(): (status: FleetStatus) => void {
  const none = byId('accounts-none');
  const list = keyedList<ReportedAccount>({
    parent: byId('accounts'),
    key: ({ account }) => account,
    make: accountRow,
  });
  let newest: FleetStatus | undefined;
  const choice = shownChoice(byId('shown'), () => newest && update(newest));
  const update = (status: FleetStatus) => {
    newest = status;
    const { at, accounts, instance } = status;
    const all = accounts.map((each) => ({ ...each, at, instance }));
    choice.count(all);
    const { has, none: text } = CHOICES[choice.chosen()];
    // The accounts come sorted by name, and stay so among those of equal health.
    const shown = all.filter(has).sort((a, b) => rank(a, at) - rank(b, at));
    list(shown);
    setText(none, text);
    show(none, shown.length === 0);
  };
  return update;
}

/**
 * Status of an account, taken from the status of its fleet. `at` is when the fleet's status was computed, in epoch ms; `instance` is the
 * instance that computed it.
 */
interface ReportedAccount extends FleetAccountStatus {
  readonly at: number;
  readonly instance: string;
}

/** Creates the row of an account. Its name links to the account's page if the account runs on this instance. */
function accountRow({ account }: ReportedAccount): Row<ReportedAccount> {
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
    update: (reported) => {
      const { at, since, figures, isHere, instance } = reported;
      setAttributes(element, { 'data-health': healthOf(reported, at) });
      if (isHere) setAttributes(link, { href: `accounts/${encodeURIComponent(account)}` });
      else link.removeAttribute('href');
      setText(state, stateText(reported, at - since));
      setText(owner, ownerText(reported, instance));
      const text = stateDetail(reported);
      setText(problem, text);
      show(problem, text !== '');
      for (const measure of measures) show(measure, figures !== null);
      show(untold, figures === null);
      setText(
        untold,
        reported.owner === null ? '' : `${reported.owner} has not reported its figures`,
      );
      if (!figures) return;
      lag.update(figures.lagMs === null ? '–' : duration(figures.lagMs));
      // The age is computed for the time at which the figures were reported, so that it does not grow between two reports.
      looked.update(figures.lookedAt === null ? 'not yet' : ago(figures.at - figures.lookedAt));
      flow.update(rate(figures.eventsPerSecond));
      const { name = 'quota', used = 0, limit = 0 } = figures.quota ?? {};
      const use = figures.quota ? `${name}: ${used} of ${limit}` : 'no quota known yet';
      bar.update(used, limit, use);
      setText(quotaText, use);
    },
  };
}

function stateText({ state, figures }: ReportedAccount, ms: number): string {
  if (state === 'running' && figures?.firstRead) {
    const { read, total } = figures.firstRead;
    return `initial snapshot, ${percent(read, total)}`;
  }
  if (state === 'running' && figures?.ready === false) return 'running, but not ready';
  return `${ACCOUNT_STATE_NAMES[state]} for ${ago(Math.max(1_000, ms)).replace(' ago', '')}`;
}

function ownerText({ owner }: ReportedAccount, instance: string): string {
  if (owner === null) return 'on no instance';
  return owner === instance ? `on ${owner}, this one` : `on ${owner}`;
}

/** Creates an element for a number and its unit. The unit stands after the number or, with `unitFirst`, before it. */
function figure(unit: string, unitFirst = false) {
  const value = html('span', { class: 'value' });
  const parts = [value, ' ', html('span', { class: 'unit' }, unit)];
  const element = html('p', { class: 'figure' }, ...(unitFirst ? parts.reverse() : parts));
  return { element, update: (text: string) => setText(value, text) };
}

/** Creates a radio button for each filter, with the number of accounts that match. The first filter is selected. */
function shownChoice(parent: HTMLElement, onChoice: () => void) {
  const buttons = (Object.keys(CHOICES) as Choice[]).map((name, nth) => {
    const input = html('input', { type: 'radio', name: 'shown', value: name });
    input.checked = nth === 0;
    input.addEventListener('change', onChoice);
    const times = html('span', { class: 'times' });
    parent.append(html('label', {}, input, `${CHOICES[name].label} `, times));
    return { name, input, times };
  });
  return {
    chosen: () => buttons.find(({ input }) => input.checked)!.name,
    count: (all: readonly ReportedAccount[]): void => {
      for (const { name, times } of buttons)
        setText(times, count(all.filter(CHOICES[name].has).length));
    },
  };
}
