import type { RequestClass, Status } from '../status/status-json.ts';
import { compact, duration, plural, rate } from './words.ts';

/**
 * Figures and texts that the status page shows for one station of the data flow. The stations are the steps from the API to Kafka: token,
 * quota, pages, diff, topics.
 */
interface Station {
  readonly figure: string;
  readonly unit: string;
  readonly note: string;
  /** Reason why the data flow waits at this step, such as `waiting for the API`. Empty if it does not wait here. */
  readonly trouble: string;
  /** Whether data flows from this step of the flow to the next one. */
  readonly moves: boolean;
  /** Fill level of the gauge that the status page draws for this station of the flow: 0 is empty, 1 or more is full. */
  readonly share: number;
  /** Value of the gauge (see `share`) as text. It is shown beside the gauge and read by screen readers. */
  readonly shareText: string;
}

/**
 * Functions that compute the content of each station of the data flow, by the station's name, in the order from the API's token to the
 * Kafka topics.
 */
export const STATIONS: Readonly<Record<string, (status: Status) => Station>> = {
  token: tokenStation,
  quota: quotaStation,
  pages: pagesStation,
  diff: diffStation,
  topics: topicsStation,
};

function tokenStation({ token: held, quotas, resources, causes }: Status): Station {
  const logins = quotas.find(({ name }) => name === 'login');
  return {
    figure: held ? duration(held.leftMs) : 'none',
    unit: held ? 'left' : '',
    note: logins ? `${logins.used} of ${logins.limit} logins in the last minute` : '',
    trouble: causes.includes('login') ? 'waiting for the login' : '',
    moves: total(resources, 'records') > 0,
    share: held ? held.leftMs / held.lifeMs : 0,
    shareText: held
      ? `${percent(held.leftMs / held.lifeMs)} of its ${duration(held.lifeMs)}`
      : quotas.length > 0 && !logins
        ? 'no login needed'
        : 'no login yet',
  };
}

function quotaStation({ quotas, resources }: Status): Station {
  const lists = quotas.filter(({ name }) => name !== 'login');
  const fullest = lists.toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0];
  const share = fullest ? fullest.used / fullest.limit : 0;
  return {
    figure: `${Math.round(share * 100)} %`,
    unit: 'used',
    note: fullest && lists.length > 1 ? 'of the most used quota, in the last minute' : '',
    trouble: '',
    moves: total(resources, 'records') > 0,
    share,
    shareText: fullest ? `${fullest.name}: ${fullest.used} of ${fullest.limit}` : 'none known yet',
  };
}

function pagesStation({ resources, causes }: Status): Station {
  const sum = (of: RequestClass) =>
    resources.reduce((before, { requests }) => before + requests[of], 0);
  const failures = [
    { times: sum('refused'), text: 'over the quota' },
    { times: sum('failed'), text: 'failed' },
    { times: sum('unanswered'), text: 'unanswered' },
  ].filter(({ times }) => times > 0);
  const ok = sum('ok');
  const all = failures.reduce((before, { times }) => before + times, ok);
  return {
    figure: compact(all),
    unit: all === 1 ? 'request/min' : 'requests/min',
    note: failures.map(({ times, text }) => `${compact(times)} ${text}`).join(', '),
    trouble: causes.includes('api') ? 'waiting for the API' : '',
    moves: total(resources, 'records') > 0,
    share: all > 0 ? ok / all : 0,
    shareText:
      all === 0
        ? 'no requests'
        : failures.length === 0
          ? 'all succeeded'
          : `${Math.floor((100 * ok) / all)} % succeeded`,
  };
}

function diffStation({ resources, causes }: Status): Station {
  const records = total(resources, 'records');
  const events = total(resources, 'events');
  return {
    figure: rate(records),
    unit: 'records/s',
    note: '',
    trouble: causes.includes('state') ? 'waiting for the state folder' : '',
    moves: events > 0,
    share: records > 0 ? events / records : 0,
    shareText:
      records > 0 ? `${percent(events / records)} of them new or changed` : 'no records to compare',
  };
}

function percent(share: number): string {
  const value = 100 * Math.min(1, share);
  return `${value > 0 && value < 9.95 ? value.toFixed(1) : value.toFixed(0)} %`;
}

function topicsStation({ resources, causes }: Status): Station {
  const events = total(resources, 'events');
  const times = resources.flatMap(({ transactionMs }) => transactionMs ?? []);
  const trouble = [
    causes.includes('kafka') ? 'waiting for Kafka' : '',
    causes.includes('registry') ? 'waiting for the registry' : '',
  ];
  return {
    figure: rate(events),
    unit: 'events/s',
    note: [
      publishedText(resources),
      ...(times.length > 0
        ? [`the last transactions took ${duration(Math.max(...times))} or less`]
        : []),
    ].join('; '),
    trouble: trouble.filter((text) => text !== '').join(', '),
    moves: false,
    ...snapshotShare(resources),
  };
}

/**
 * Describes the number of published records of all lists. The text begins with `at least` while that number is unknown for some of the
 * lists.
 */
function publishedText(resources: Status['resources']): string {
  const counts = resources.flatMap(({ known }) => known ?? []);
  if (counts.length === 0) return 'the number of published records is not known yet';
  const sum = counts.reduce((before, each) => before + each, 0);
  return `${counts.length < resources.length ? 'at least ' : ''}${plural(sum, 'record')} published`;
}

/** Returns the progress of the initial snapshots of all lists together: as a number from 0 to 1 (1 if none is running), and as text. */
function snapshotShare(resources: Status['resources']): Pick<Station, 'share' | 'shareText'> {
  const reads = resources.flatMap(({ firstRead }) => firstRead ?? []);
  if (reads.every(({ done }) => done)) {
    return {
      share: 1,
      shareText: reads.length > 0 ? 'initial snapshots are done' : 'no initial snapshot runs',
    };
  }
  const sum = (of: 'read' | 'total') => reads.reduce((before, each) => before + each[of], 0);
  const share = sum('read') / Math.max(1, sum('total'));
  return { share, shareText: `initial snapshots: ${percent(share)} done` };
}

function total(resources: Status['resources'], of: 'records' | 'events'): number {
  return resources.reduce((sum, { perSecond }) => sum + perSecond[of], 0);
}
