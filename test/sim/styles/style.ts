import type { Chance } from '../../support/chance.ts';

/** Kinds of paging; `numbered` is `page` with pages of a fixed size. */
export const PAGINGS = ['offset', 'page', 'numbered', 'after', 'cursor', 'link', 'none'] as const;

export type Times = 'iso' | 'epoch-s' | 'epoch-ms' | 'http-date' | 'pattern';

/** An API of one list, as a seed draws it: how the server behaves, and what its description says. */
export interface Style {
  readonly paging: (typeof PAGINGS)[number];
  readonly method: 'GET' | 'POST';
  /** Greatest page size by the description; for `numbered` the size of all pages. */
  readonly limit: number;
  /** Most records that the server puts into a page, whatever size was requested. */
  readonly most: number;
  /** Number of the first page. */
  readonly first: 0 | 1;
  /** Response to a page after the key of a deleted record: the records after the key, a status, or the front of the list. */
  readonly toDeleted: 'compares' | 400 | 404 | 'front';
  /** Content of cursors and links: the sort values of the last record, or, in disguise, an offset. */
  readonly cursor: 'keyset' | 'offset';
  /** Whether links are relative to the list's address. */
  readonly isRelative: boolean;
  readonly total: 'body' | 'header' | 'request' | undefined;
  /** Whether responses say if a page follows. Lists by cursor or link do so by `next`. */
  readonly more: 'body' | 'header' | undefined;
  /** Place of the next cursor or address. */
  readonly next: 'body' | 'header' | 'Link';
  readonly one: 'path' | 'query' | undefined;
  readonly dates: 'from' | 'from-to' | undefined;
  readonly isStamped: boolean;
  readonly times: Times;
  /** Whether the list shows deleted records for a while. */
  readonly hasTombstones: boolean;
  readonly agreed: boolean;
  readonly sort: 'key-asc' | 'key-desc' | 'stamp-asc' | 'stamp-desc';
  /** Whether records with equal stamps come in an arbitrary order that differs between responses. */
  readonly isUnstable: boolean;
  readonly keyFields: readonly [string] | readonly [string, string];
  readonly auth: 'login' | 'none';
  readonly names: Names;
  /** Whether the last record has a cursor, too, behind which is an empty page. */
  readonly isTrailing: boolean;
  /** Whether some pages are empty although the list continues, as if their records were filtered out. */
  readonly hasEmptyPages: boolean;
}

/** Names of parameters and fields, none of them the wine API's. */
export interface Names {
  readonly list: string;
  readonly offset: string;
  readonly limit: string;
  readonly after: string;
  readonly cursor: string;
  readonly page: string;
  readonly from: string;
  readonly to: string;
  /** Members on the way to the records; empty if the records are the body. */
  readonly records: readonly string[];
  readonly total: string;
  readonly more: string;
  readonly next: string;
  readonly updated: string;
  /** Member of a POST body that holds the variables; undefined if the body does. */
  readonly variables: string | undefined;
}

export function drawStyle(chance: Chance): Style {
  const paging = chance.pick(PAGINGS);
  const isPlanned = paging === 'offset' || paging === 'page';
  const isByNext = paging === 'cursor' || paging === 'link';
  const method = paging !== 'link' && chance.is(0.3) ? 'POST' : 'GET';
  const limit = isPlanned ? 21 + chance.below(20) : 4 + chance.below(30);
  const isCapped = paging !== 'numbered' && paging !== 'none' && chance.is(0.25);
  const records = chance.pick([['data'], ['result', 'rows'], ['items'], []]);
  const inBody = (place: 'body' | 'header') => (records.length === 0 ? 'header' : place);
  const ownTotal = chance.is(0.3) ? 'request' : undefined;
  const total = chance.is(0.5)
    ? (ownTotal ?? inBody(chance.pick(['body', 'header'] as const)))
    : undefined;
  const needsMore = !isByNext && paging !== 'none' && (total === undefined || chance.is(0.5));
  const isStamped = chance.is(0.7);
  const sort = chance.pick(['key-asc', 'key-desc', 'stamp-asc', 'stamp-desc'] as const);
  const cursor = chance.is(0.6) ? 'keyset' : 'offset';
  const isByKey = paging === 'after';
  const isUnstable =
    chance.is(0.3) && !isByKey && !(isByNext && cursor === 'keyset') && sort.startsWith('stamp');
  const next =
    paging === 'link' && chance.is(0.5) ? 'Link' : inBody(chance.pick(['body', 'header']));
  return {
    paging,
    method,
    limit,
    most: isCapped ? Math.max(3, Math.ceil(limit / 2)) : limit,
    first: chance.pick([0, 1]),
    toDeleted: chance.pick(['compares', 400, 404, 'front'] as const),
    cursor,
    isRelative: chance.is(0.3),
    total,
    more: needsMore ? inBody(chance.pick(['body', 'header'])) : undefined,
    next,
    one: chance.is(0.5) ? chance.pick(['path', 'query'] as const) : undefined,
    dates: isStamped && chance.is(0.7) ? chance.pick(['from', 'from-to'] as const) : undefined,
    isStamped,
    times: chance.pick(['iso', 'epoch-s', 'epoch-ms', 'http-date', 'pattern'] as const),
    hasTombstones: chance.is(0.3),
    agreed: chance.is(0.3),
    sort: isByKey ? chance.pick(['key-asc', 'key-desc'] as const) : sort,
    isUnstable,
    keyFields: !isByKey && chance.is(0.25) ? ['site', 'no'] : [chance.pick(['uid', 'sku'])],
    auth: chance.is(0.3) ? 'none' : 'login',
    names: {
      list: chance.pick(['things', 'price-rows', 'events']),
      offset: chance.pick(['skip', 'start']),
      limit: chance.pick(['per_page', 'take']),
      after: chance.pick(['starting_after', 'since_id']),
      cursor: chance.pick(['cursor', 'page_info']),
      page: chance.pick(['page', 'p']),
      from: chance.pick(['changed[gte]', 'min_date']),
      to: chance.pick(['changed[lte]', 'max_date']),
      records,
      total: chance.pick(['count', 'X-Total-Count']),
      more: chance.pick(['has_more', 'moreAvailable']),
      next: chance.pick(['next_cursor', 'nextLink']),
      updated: chance.pick(['changed', 'modified on']),
      variables: chance.is(0.5) ? 'variables' : undefined,
    },
    // Drawn last: seeds of earlier versions draw the same lists.
    isTrailing: isByNext && chance.is(0.3),
    hasEmptyPages: isByNext && chance.is(0.2),
  };
}

/** Quotas of a described API, per minute. */
interface Quotas {
  readonly perMinute: number;
  readonly loginsPerMinute: number;
}

/** The description of an API, as the text of a user's file. */
export function descriptionText(style: Style, { perMinute, loginsPerMinute }: Quotas): string {
  const { names, paging, method, total, more, next, one, dates, keyFields } = style;
  const place = (at: 'body' | 'header', name: string) =>
    at === 'header' ? { header: name } : `/${name}`;
  const size = { [names.limit]: '{limit}' };
  const sent: Record<string, string> = {
    offset: { [names.offset]: '{offset}', ...size },
    page: { [names.page]: '{page}', ...size },
    numbered: { [names.page]: '{page}' },
    after: { [names.after]: '{after}', ...size },
    cursor: { [names.cursor]: '{cursor}', ...size },
    link: size,
    none: {},
  }[paging];
  const hasSize = Object.hasOwn(sent, names.limit);
  const body = names.variables === undefined ? sent : { [names.variables]: sent };
  const isByNext = paging === 'cursor' || paging === 'link';
  const list = {
    path: `/api/${names.list}`,
    ...(method === 'POST' ? { method, body } : { query: sent }),
    ...(dates && {
      dates: { [names.from]: '{from}', ...(dates === 'from-to' && { [names.to]: '{to}' }) },
    }),
    ...(hasSize && { limit: style.limit }),
    paging: paging === 'numbered' ? 'page' : paging,
    ...((paging === 'page' || paging === 'numbered') && { first: style.first }),
    records: names.records.map((name) => `/${name}`).join(''),
    ...(total === 'request' && { total: { path: `/api/${names.list}/count`, at: '/n' } }),
    ...(total && total !== 'request' && { total: place(total, names.total) }),
    ...(more && { more: place(more, names.more) }),
    ...(isByNext && { next: next === 'Link' ? { link: 'next' } : place(next, names.next) }),
    key: keyFields.join('+'),
    ...(style.isStamped && { updated: names.updated }),
    ...(one === 'path' && { one: { path: `/api/${names.list}/{key}`, record: '' } }),
    ...(one === 'query' && {
      one: { path: `/api/${names.list}/find`, query: { id: '{key}' }, record: '/found' },
    }),
    ...(style.hasTombstones && { deleted: { at: '/gone', is: true } }),
    ...(style.agreed && { agreed: true }),
  };
  const login = {
    path: '/sign-in',
    body: { secret: '{api_key}' },
    token: '/bearer',
    life: { at: '/lives', unit: 's' },
    quota: `${loginsPerMinute}/min`,
  };
  return JSON.stringify({
    format: 1,
    api: 'styles',
    times:
      style.times === 'pattern' ? { pattern: 'yyyy/MM/dd HH:mm:ss', zone: 'UTC' } : style.times,
    auth: style.auth === 'none' ? 'none' : { login },
    quota: `${perMinute}/min per list`,
    lists: { [names.list]: list },
  });
}

/** Units of the notations of times, in ms. */
const UNITS: Readonly<Record<Times, number>> = {
  iso: 1,
  'epoch-ms': 1,
  'epoch-s': 1_000,
  'http-date': 1_000,
  pattern: 1_000,
};

/** Rounds a time down to what its notation can say, in epoch ms. */
export function roundedTime(times: Times, ms: number): number {
  return Math.floor(ms / UNITS[times]) * UNITS[times];
}

export function timeText(times: Times, ms: number): string | number {
  const at = new Date(roundedTime(times, ms));
  if (times === 'epoch-s' || times === 'epoch-ms') return at.getTime() / UNITS[times];
  if (times === 'http-date') return at.toUTCString();
  const iso = at.toISOString();
  return times === 'iso' ? iso : iso.slice(0, 19).replace('T', ' ').replaceAll('-', '/');
}

export function timeOf(times: Times, text: string): number {
  if (times === 'epoch-s' || times === 'epoch-ms') return Number(text) * UNITS[times];
  if (times !== 'pattern') return Date.parse(text);
  return Date.parse(`${text.replaceAll('/', '-').replace(' ', 'T')}Z`);
}
