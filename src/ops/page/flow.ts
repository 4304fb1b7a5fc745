import type { Status } from '../status-json.ts';
import { byId, html, setAttributes, setText } from './dom.ts';
import { gauge } from './gauge.ts';
import { compact, duration, plural, rate } from './words.ts';

/** A station of the flow as it is now. */
interface Station {
  readonly figure: string;
  readonly unit: string;
  readonly note: string;
  /** What it waits for, in words; empty when it works. */
  readonly trouble: string;
  /** Whether something goes on from here to the next. */
  readonly moves: boolean;
  /** Fills the bar. */
  readonly share: number;
}

const STATIONS: Readonly<Record<string, (status: Status) => Station>> = {
  token,
  quota,
  pages,
  diff,
  topics,
};

/** The way of the data as a picture: five stations, with figures on them. */
export function flowView(): (status: Status) => void {
  const parent = byId('flow');
  const stations = Object.entries(STATIONS).map(([name, at]) => {
    const figure = html('span', { class: 'value' });
    const unit = html('span', { class: 'unit' });
    const note = html('p', { class: 'note' });
    const trouble = html('p', { class: 'trouble' });
    const bar = gauge(name);
    const element = html(
      'li',
      {},
      html('h3', {}, name),
      html('p', { class: 'figure' }, figure, ' ', unit),
      bar.element,
      note,
      trouble,
      html('span', { class: 'pipe', 'aria-hidden': 'true' }, html('span')),
    );
    parent.append(element);
    return (status: Status) => {
      const now = at(status);
      setText(figure, now.figure);
      setText(unit, now.unit);
      setText(note, now.note);
      setText(trouble, now.trouble);
      setAttributes(element, { 'data-moves': String(now.moves), 'data-trouble': String(now.trouble !== '') }); // prettier-ignore
      bar.update(now.share * 100, 100, `${now.figure} ${now.unit}`);
    };
  });
  return (status) => stations.forEach((update) => update(status));
}

function token({ token: held, quotas, resources, causes }: Status): Station {
  const logins = quotas.find(({ name }) => name === 'login');
  return {
    figure: held ? duration(held.leftMs) : 'none',
    unit: held ? 'left' : '',
    note: logins ? `${logins.used} of ${logins.limit} logins in the last minute` : '',
    trouble: causes.includes('login') ? 'waiting for the login' : '',
    moves: total(resources, 'records') > 0,
    share: held ? held.leftMs / held.lifeMs : 0,
  };
}

function quota({ quotas, resources }: Status): Station {
  const lists = quotas.filter(({ name }) => name !== 'login');
  const fullest = lists.toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0];
  const share = fullest ? fullest.used / fullest.limit : 0;
  return {
    figure: `${Math.round(share * 100)} %`,
    unit: 'used',
    note: fullest ? `most: ${fullest.name}, ${fullest.used} of ${fullest.limit} a minute` : '',
    trouble: '',
    moves: total(resources, 'records') > 0,
    share,
  };
}

function pages({ resources, causes }: Status): Station {
  const sum = { ok: 0, refused: 0, failed: 0, unanswered: 0 };
  for (const { requests } of resources) {
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += requests[name];
  }
  const bad = sum.refused + sum.failed + sum.unanswered;
  const all = sum.ok + bad;
  return {
    figure: compact(all),
    unit: all === 1 ? 'request a minute' : 'requests a minute',
    note: bad === 0 ? 'all answered well' : describeBad(sum),
    trouble: causes.includes('api') ? 'waiting for the API' : '',
    moves: total(resources, 'records') > 0,
    share: all > 0 ? sum.ok / all : 0,
  };
}

function describeBad(sum: Readonly<Record<'refused' | 'failed' | 'unanswered', number>>): string {
  return [
    sum.refused > 0 ? `${compact(sum.refused)} over the quota` : '',
    sum.failed > 0 ? `${compact(sum.failed)} failed` : '',
    sum.unanswered > 0 ? `${compact(sum.unanswered)} unanswered` : '',
  ]
    .filter((text) => text !== '')
    .join(', ');
}

function diff({ resources, causes }: Status): Station {
  const records = total(resources, 'records');
  const events = total(resources, 'events');
  return {
    figure: rate(records),
    unit: 'records/s',
    note: records > 0 ? `read; ${percent(events / records)} of them new or changed` : 'nothing to compare just now', // prettier-ignore
    trouble: causes.includes('state') ? 'waiting for the state folder' : '',
    moves: events > 0,
    share: records > 0 ? events / records : 0,
  };
}

function percent(share: number): string {
  const value = 100 * Math.min(1, share);
  return `${value > 0 && value < 9.95 ? value.toFixed(1) : value.toFixed(0)} %`;
}

function topics({ resources, causes }: Status): Station {
  const events = total(resources, 'events');
  const times = resources.flatMap(({ transactionMs }) => transactionMs ?? []);
  const known = resources.reduce((sum, resource) => sum + (resource.known ?? 0), 0);
  const trouble = [
    causes.includes('kafka') ? 'waiting for Kafka' : '',
    causes.includes('registry') ? 'waiting for the registry' : '',
  ];
  return {
    figure: rate(events),
    unit: 'events/s',
    note: `${plural(known, 'record')} published${times.length > 0 ? `; the last transactions took ${duration(Math.max(...times))} or less` : ''}`, // prettier-ignore
    trouble: trouble.filter((text) => text !== '').join(', '),
    moves: false,
    share: firstReadShare(resources),
  };
}

/** How much of what there is has been read once; 1 where no first read goes on. */
function firstReadShare(resources: Status['resources']): number {
  const reads = resources.flatMap(({ firstRead }) => firstRead ?? []);
  if (reads.every(({ done }) => done)) return 1;
  const sum = (of: 'read' | 'total') => reads.reduce((before, each) => before + each[of], 0);
  return sum('read') / Math.max(1, sum('total'));
}

function total(resources: Status['resources'], of: 'records' | 'events'): number {
  return resources.reduce((sum, { perSecond }) => sum + perSecond[of], 0);
}
