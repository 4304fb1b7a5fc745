// The experiments of `check --measure`: which requests each sends, and what it concludes from the responses. All are pure functions.

import { isPagedByOffset } from '../description/description.ts';
import type { Claim } from '../description/format.ts';
import { canonicalJson } from '../schemas/json/json.ts';
import { absentKey, countText, differingFields, isRefusal, placeIn, replyText } from './replies.ts';
import type { Facts, Measurement, Page, Question, Reply, Row, Verdict } from './replies.ts';

/** One experiment on a list. */
export interface Experiment {
  /** Claim that a skipped or failed experiment leaves unmeasured. */
  readonly claim: Claim | 'query';
  /** Pause between the first page and the experiment's requests, in ms. Default 0. */
  readonly afterMs?: number;
  /** Returns the requests; none if the facts suffice. Returns a text with the reason if the experiment does not apply to the list. */
  readonly questions: (facts: Facts) => readonly Question[] | string;
  readonly judge: (facts: Facts, replies: readonly Reply[]) => readonly Measurement[];
}

/**
 * Largest shift of a page against the first page that is explained by records inserted or deleted in between, in records. If it is too
 * small, a busy list looks like a server that moves offsets; if it is too large, a server that moves them by this number is not noticed.
 */
const DRIFT = 2;
/** Number of records that the first page needs so that pages of 5 and 10 can be found in it. */
const ENOUGH = 20;
/** Page size of the requests at the end of the list. */
const TAIL = 10;
const A_DAY_MS = 86_400_000;
/** Largest difference between time zones, in ms. */
const ZONES_MS = 26 * 3_600_000;
const PAUSE_MS = 60_000;

const result = (
  claim: Measurement['claim'],
  verdict: Verdict,
  measured: string,
): readonly Measurement[] => [{ claim, verdict, measured }];

const pageOf = (reply: Reply | undefined): Page | undefined =>
  reply === undefined || isRefusal(reply) ? undefined : reply;

const keysOf = ({ rows }: Page): string[] =>
  rows.flatMap(({ key }) => (key === undefined ? [] : [key]));

const hasOwnTotal = ({ total: place }: Facts['list']) =>
  typeof place === 'object' && 'path' in place;

/** Whether the first page is the whole list, as far as its response says. */
const isWhole = ({ first, list, size }: Facts) =>
  !first.hasNext && (list.paging === 'none' || first.rows.length < size);

const key: Experiment = {
  claim: 'key',
  questions: ({ first }) => (first.rows.length === 0 ? 'the list is empty' : []),
  judge: ({ first }) => {
    const keys = keysOf(first);
    const doubles = keys.length - new Set(keys).size;
    const without = first.rows.length - keys.length;
    const of = countText(first.rows.length);
    if (keys.length === 0) return result('key', 'refuted', `none of ${of} has the key`);
    if (doubles > 0) return result('key', 'refuted', `${doubles} of ${of} repeat a key`);
    if (without > 0)
      return result('key', 'warning', `${without} of ${of} have no key: run reports them`);
    return result('key', 'not refuted', `in all of ${of}, each once`);
  },
};

const updated: Experiment = {
  claim: 'updated',
  questions: ({ first, list }) => {
    if (list.updated.length === 0) return 'the description has no updated';
    return first.rows.length === 0 ? 'the list is empty' : [];
  },
  judge: ({ first, list }) => {
    const { rows, serverTime } = first;
    const stamps = rows.flatMap(({ at }) => at ?? []);
    const of = countText(rows.length);
    if (stamps.length === 0) {
      const verdict = list.dates === undefined ? 'warning' : 'refuted';
      return result('updated', verdict, `none of ${of} has such a time`);
    }
    const ahead = stamps.filter((at) => serverTime !== undefined && at > serverTime + 60_000);
    if (ahead.length === stamps.length) {
      return result('updated', 'refuted', `all of ${of} are ahead of the server's Date: see times`);
    }
    const unit = [A_DAY_MS, 60_000, 1_000].find((ms) => stamps.every((at) => at % ms === 0)) ?? 1;
    const ties = stamps.length - new Set(stamps).size;
    const facts = [
      stamps.length === rows.length
        ? `in all of ${of}`
        : `${rows.length - stamps.length} of ${of} have none`,
      `resolution ${durationText(unit)}`,
      `${ties} ${ties === 1 ? 'tie' : 'ties'}`,
      ...(ahead.length > 0 ? [`${ahead.length} ahead of the server's Date`] : []),
    ].join(', ');
    const isPoor = stamps.length < rows.length || (unit > 1_000 && rows.length > 5);
    return result('updated', isPoor || ahead.length > 0 ? 'warning' : 'not refuted', facts);
  },
};

/** The first page again: whether the records that did not change kept their order. */
const order = (afterMs: number): Experiment => ({
  claim: 'order',
  afterMs,
  questions: ({ first, size }) =>
    first.rows.length < 2 ? 'the list has fewer than 2 records' : [{ offset: 0, pageSize: size }],
  judge: ({ first }, [reply]) => {
    const when = afterMs === 0 ? 'the first page twice' : `after ${durationText(afterMs)}`;
    const again = pageOf(reply);
    if (!again) return result('order', 'not measured', `${when}: ${replyText(reply!)}`);
    const before = new Map(first.rows.map((row) => [row.key, row]));
    const both = again.rows.filter(({ key }) => key !== undefined && before.has(key));
    const pairs = both.map((row) => [before.get(row.key)!, row] as const);
    const same = pairs.filter(([one, other]) => isSame(one, other));
    const stood = new Set(same.map(([one]) => one.key));
    const left = first.rows.filter(({ key }) => stood.has(key)).map((row) => row.key);
    const right = again.rows.filter(({ key }) => stood.has(key)).map((row) => row.key);
    if (left.join('\n') !== right.join('\n')) {
      const text = `${when}: ${countText(same.length)} stood still, but in another order`;
      return result('order', 'refuted', text);
    }
    if (same.length === 0 && both.length === 0) {
      return result('order', 'not measured', `${when}: no record came again`);
    }
    const unstamped = pairs.filter(
      ([one, other]) => one.at !== null && one.at === other.at && !isSame(one, other),
    );
    const fields = new Set(unstamped.flatMap(([a, b]) => differingFields(a.json, b.json)));
    const gone = first.rows.length - both.length;
    const moved = gone === 0 ? 'the same records' : `${countText(gone)} moved away`;
    const text = `${when}: ${moved}, ${same.length} unchanged and in the same order`;
    if (fields.size === 0) return result('order', 'not refuted', text);
    const names = [...fields].slice(0, 5).join(', ');
    return result('order', 'warning', `${text}; ${names} differed with the same time of change`);
  },
});

const limit: Experiment = {
  claim: 'limit',
  questions: ({ list, hasSize }) => {
    if (list.limit === undefined) return 'the description has no limit';
    return hasSize ? [] : 'no parameter sends {limit}';
  },
  judge: ({ first, size }) => {
    const { length } = first.rows;
    const text = `${length} came for ${size}`;
    if (length > size) return result('limit', 'refuted', `${text}: the size is not honoured`);
    if (length === size) return result('limit', 'not refuted', text);
    if (first.hasNext || (first.total ?? 0) > length)
      return result('limit', 'refuted', `${text}, and the list goes on: pages are capped`);
    return result('limit', 'not measured', `the list has only ${countText(length)}`);
  },
};

const twiceTheLimit: Experiment = {
  claim: 'limit',
  questions: (facts) => {
    const { size, list, hasSize } = facts;
    if (!hasSize || list.limit === undefined) return 'the description has no limit that is sent';
    if (isWhole(facts)) return 'one page holds the list';
    return [{ offset: 0, pageSize: 2 * size }];
  },
  judge: ({ first, size }, [reply]) => {
    const page = pageOf(reply);
    const asked = `${2 * size} asked`;
    if (!page) return result('limit', 'not refuted', `${asked}: refused, ${replyText(reply!)}`);
    const { length } = page.rows;
    if (length > first.rows.length && length > size)
      return result('limit', 'not refuted', `${asked}: ${length} came, the limit may be higher`);
    return result('limit', 'not refuted', `${asked}: ${length} came, capped silently`);
  },
};

/** Pages at other places than multiples of the limit, found again in the first page. */
const offsets: Experiment = {
  claim: 'paging',
  questions: ({ list, first, hasSize }) => {
    if (!isPagedByOffset(list)) return 'pages have no offset';
    if (!hasSize) return 'no parameter sends {limit}';
    if (first.rows.length < ENOUGH) return `the first page has fewer than ${ENOUGH} records`;
    const other = list.paging === 'offset' ? 7 : 10;
    return [
      { offset: 15, pageSize: 5 },
      { offset: other, pageSize: 10 },
    ];
  },
  judge: ({ list, first }, replies) => {
    const asked = list.paging === 'offset' ? [15, 7] : [15, 10];
    const sizes = [5, 10];
    return replies.flatMap((reply, nth) => {
      const [from, size] = [asked[nth]!, sizes[nth]!];
      const what =
        list.paging === 'offset'
          ? `offset ${from} of size ${size}`
          : `page ${from / size + list.first} of size ${size}`;
      const page = pageOf(reply);
      if (!page) return result('paging', 'refuted', `${what}: refused, ${replyText(reply)}`);
      const place = placeIn(first, page);
      const { length } = page.rows;
      if (place === undefined)
        return result('paging', 'refuted', `${what}: ${length} that the first page does not begin`);
      if (length !== size) return result('paging', 'refuted', `${what}: ${length} came`);
      if (Math.abs(place - from) > DRIFT)
        return result('paging', 'refuted', `${what} begins at record ${place}: moved or ignored`);
      return result('paging', 'not refuted', `${what} begins at record ${place}`);
    });
  },
};

/** The page behind a key, a cursor, an address or a page number. */
const behind: Experiment = {
  claim: 'paging',
  questions: ({ list, first, size }) => {
    if (isPagedByOffset(list)) return 'pages are asked for by offset';
    if (list.paging === 'none') return 'one response is the list';
    if (list.paging === 'after') {
      const fifth = first.rows[4]?.key;
      if (first.rows.length < 6 || fifth === undefined) return 'the list has fewer than 6 records';
      return [{ cursor: fifth, offset: 5, pageSize: size }];
    }
    if (!first.hasNext) return 'one page holds the list';
    const cursor = list.paging === 'page' ? String(list.first + 1) : first.next;
    if (cursor === undefined) return [];
    return [{ cursor, offset: first.rows.length, pageSize: size }];
  },
  judge: ({ list, first }, [reply]) => {
    if (!reply) return result('paging', 'refuted', 'a page follows, but next shows none');
    const page = pageOf(reply);
    if (!page) return result('paging', 'refuted', `the second page: refused, ${replyText(reply)}`);
    const place = placeIn(first, page);
    if (list.paging === 'after') {
      const isNear = place !== undefined && Math.abs(place - 5) <= DRIFT;
      const text = `after the 5th key: begins at ${place === undefined ? 'no record of the first page' : `record ${place}`}`;
      return result('paging', isNear ? 'not refuted' : 'refuted', text);
    }
    const known = new Set(keysOf(first));
    const again = keysOf(page).filter((each) => known.has(each)).length;
    const isRepeated = page.rows.length > 0 && again > page.rows.length / 2;
    const text = `the second page: ${replyText(page)}, ${again} of them of the first page`;
    return result('paging', isRepeated ? 'refuted' : 'not refuted', text);
  },
};

const unknownCursor: Experiment = {
  claim: 'paging',
  questions: ({ list, first, size }) => {
    if (list.paging !== 'after' && list.paging !== 'cursor') return 'pages have no key or cursor';
    if (first.rows.length < 2) return 'the list has fewer than 2 records';
    return [{ cursor: absentKey(keysOf(first)), offset: 0, pageSize: size }];
  },
  judge: ({ list, first }, [reply]) => {
    const what = list.paging === 'after' ? 'after a key that never was' : 'at a cursor never given';
    const page = pageOf(reply);
    if (!page) return result('paging', 'not refuted', `${what}: refused, ${replyText(reply!)}`);
    if (placeIn(first, page) === 0) {
      const text = `${what}: silently the front of the list. A reading whose last record was deleted would begin anew`;
      return result('paging', 'warning', text);
    }
    return result('paging', 'not refuted', `${what}: ${replyText(page)}`);
  },
};

/** The total against the first page; it may have a request of its own. */
const total: Experiment = {
  claim: 'total',
  questions: ({ list }) => {
    if (list.total === undefined) return 'the description has no total';
    return hasOwnTotal(list) ? [{ is: 'total' }] : [];
  },
  judge: (facts, [reply]) => {
    const { rows } = facts.first;
    const count = reply ? pageOf(reply)?.total : facts.first.total;
    if (count === undefined) {
      const why = reply && isRefusal(reply) ? `: refused, ${replyText(reply)}` : '';
      return result('total', 'refuted', `no number is there${why}`);
    }
    const isWrong = isWhole(facts) ? count !== rows.length : count < rows.length;
    const text = `total ${count}, first page ${rows.length}`;
    return result('total', isWrong ? 'refuted' : 'not refuted', text);
  },
};

/** The last page and one beyond the end. */
const end: Experiment = {
  claim: 'more',
  questions: (facts) => {
    const { list, first, size, hasSize } = facts;
    if (list.paging === 'none') return 'one response is the list';
    if (list.paging === 'after') {
      const last = first.rows.at(-1)?.key;
      if (!isWhole(facts) || last === undefined) return 'the last page is not known';
      return [{ cursor: last, offset: first.rows.length, pageSize: size }];
    }
    if (!isPagedByOffset(list) || !hasSize) return 'the last page cannot be asked for';
    if (isWhole(facts)) return first.rows.length === 0 ? 'the list is empty' : [nextPage(size)];
    const count = facts.ownTotal ?? first.total;
    if (count === undefined || count < 1) return 'no total says where the last page is';
    const offset = Math.floor((count - 1) / TAIL) * TAIL;
    return [
      { offset, pageSize: TAIL },
      { offset: offset + TAIL, pageSize: TAIL },
    ];
  },
  judge: (facts, replies) => {
    const beyond = replies.at(-1)!;
    const last = replies.length > 1 ? replies[0]! : facts.first;
    const page = pageOf(last);
    if (!page) return result('total', 'refuted', `the last page: refused, ${replyText(last)}`);
    const found = [...(replies.length > 1 ? lastPage(facts, page) : [])];
    const { rows = [], hasNext = false } = pageOf(beyond) ?? {};
    if (rows.length > DRIFT) {
      const text = `${countText(rows.length)} came from beyond the last page: the total is too small`;
      return [...found, ...result('total', 'refuted', text)];
    }
    const text = `last page: more ${String(page.hasNext)}; one beyond: ${replyText(beyond)}`;
    const isEndless = page.hasNext || hasNext;
    found.push(...result('more', isEndless ? 'refuted' : 'not refuted', text));
    return found;
  },
};

const nextPage = (size: number): Question => ({ offset: size, pageSize: size });

function lastPage({ first, ownTotal: own }: Facts, page: Page): readonly Measurement[] {
  const total = own ?? first.total ?? 0;
  const expected = (page.total ?? total) - Math.floor((total - 1) / TAIL) * TAIL;
  const missing = expected - page.rows.length;
  const text = `the last page of a total of ${page.total ?? total} has ${countText(page.rows.length)}`;
  if (Math.abs(missing) > DRIFT)
    return result('total', 'refuted', `${text}, ${expected} should be there`);
  return result('total', 'not refuted', text);
}

/** Windows from a record's stamp, from one unit later, and from the year 2099. */
const dates: Experiment = {
  claim: 'dates',
  questions: ({ list, first, times, unitMs, now, size }) => {
    if (list.dates === undefined) return 'the description has no dates';
    const newest = newestOf(first);
    if (newest === undefined) return 'no record has a time to ask for';
    const { at } = newest;
    const to = times.write(Math.max(now, at) + 2 * A_DAY_MS);
    const far = Date.UTC(2099, 0, 1);
    const page = { offset: 0, pageSize: size };
    return [
      { ...page, from: times.write(far), to: times.write(far + A_DAY_MS) },
      { ...page, from: times.write(at), to },
      { ...page, from: times.write(at + unitMs), to },
    ];
  },
  judge: (facts, [far, from, later]) => [
    ...windowFrom(facts, far!, from!, later!),
    ...totalOfWindow(facts, pageOf(from)),
  ],
};

function windowFrom(
  { first, unitMs }: Facts,
  far: Reply,
  from: Reply,
  later: Reply,
): readonly Measurement[] {
  const future = pageOf(far)?.rows.length ?? 0;
  if (future > 0)
    return result('dates', 'refuted', `from 2099: ${countText(future)}, so dates are ignored`);
  const window = pageOf(from);
  if (!window) return result('dates', 'refuted', `a window: refused, ${replyText(from)}`);
  const { key: wanted, at } = newestOf(first)!;
  const shows = (page: Page | undefined) => page?.rows.some((row) => row.key === wanted) === true;
  if (!shows(window)) {
    if (window.hasNext) return result('dates', 'not measured', 'the window has several pages');
    const why = shows(pageOf(later))
      ? 'dates have another order'
      : 'the start is exclusive, or dates are read in another zone';
    const text = `from a record's time: ${replyText(window)}, not that record: ${why}`;
    return result('dates', 'refuted', text);
  }
  const earliest = Math.min(...window.rows.flatMap((row) => row.at ?? []));
  const earlyMs = Math.max(0, at - earliest);
  const early = `from a record's time: records up to ${durationText(earlyMs)} earlier came too`;
  if (earlyMs > ZONES_MS)
    return result('dates', 'refuted', `${early}: the window is not of updated`);
  if (earlyMs >= 1_000) {
    return result('dates', 'warning', `${early}: dates are read as days, or in another zone`);
  }
  const edge = pageOf(later)?.rows.some((row) => row.key === wanted && row.at === at)
    ? `still at ${durationText(unitMs)} later: dates are read in coarser units`
    : `not at ${durationText(unitMs)} later`;
  return result('dates', 'not refuted', `a record comes from its own time on, ${edge}`);
}

function totalOfWindow({ list, first }: Facts, window: Page | undefined): readonly Measurement[] {
  if (
    list.total === undefined ||
    hasOwnTotal(list) ||
    window?.total === undefined ||
    window.hasNext
  )
    return [];
  const { total } = window;
  const text = `a window of ${countText(window.rows.length)} has the total ${total}`;
  if (total === window.rows.length) return result('total', 'not refuted', text);
  const whose = total === first.total ? ': that of the whole list' : '';
  return result('total', 'refuted', text + whose);
}

const longAgo: Experiment = {
  claim: 'dates',
  questions: ({ list, times, now, size }) =>
    list.dates === undefined
      ? 'the description has no dates'
      : [
          {
            ...{ offset: 0, pageSize: size, from: times.write(Date.UTC(2000, 0, 1)) },
            to: times.write(now + 2 * A_DAY_MS),
          },
        ],
  judge: ({ first }, [reply]) => {
    const text = `from 2000: ${replyText(reply!)}`;
    const page = pageOf(reply);
    if (!page) return result('dates', 'warning', text);
    const isEmpty = page.rows.length === 0 && first.rows.some(({ at }) => at !== null);
    return result('dates', isEmpty ? 'refuted' : 'not refuted', text);
  },
};

const unknownParameter: Experiment = {
  claim: 'query',
  questions: ({ list, first, size }) => {
    if (list.method === 'POST') return 'the list is read by POST';
    if (first.rows.length === 0) return 'the list is empty';
    return [{ offset: 0, pageSize: size, is: 'unknown' }];
  },
  judge: (_, [reply]) => {
    const what = 'an unknown parameter';
    const page = pageOf(reply);
    if (!page) return result('query', 'not refuted', `${what} is refused, ${replyText(reply!)}`);
    if (page.rows.length > 0) return result('query', 'not refuted', `${what} is ignored`);
    const text = `${what} empties the list silently: a misspelled one looks like a list without records`;
    return result('query', 'warning', text);
  },
};

const one: Experiment = {
  claim: 'one',
  questions: ({ list, first }) => {
    if (!list.one) return 'the description has no single read';
    const row = rowToAsk(first);
    if (row?.key === undefined) return 'no record has a key to ask for';
    if (list.one.digitsOnly && !/^\d+$/.test(row.key)) return 'the key is not of digits';
    return [{ key: row.key }, { key: absentKey(keysOf(first)) }];
  },
  judge: ({ first }, [found, absent]) => [
    ...sameAsInList(rowToAsk(first)!, found!),
    ...goneText(absent!),
  ],
};

const rowToAsk = ({ rows }: Page): Row | undefined => rows.at(-1);

function sameAsInList(row: Row, reply: Reply): readonly Measurement[] {
  const page = pageOf(reply);
  const alone = page?.rows.find((each) => each.key === row.key);
  if (!page) return result('one', 'refuted', `one by key: refused, ${replyText(reply)}`);
  if (!alone) {
    const text = page.isGone ? 'not there, though the list has it' : 'another record, or none';
    return result('one', 'refuted', `one by key: ${text}`);
  }
  if (isSame(row, alone))
    return result('one', 'not refuted', 'one by key: the same as in the list');
  if (row.at !== alone.at) {
    return result('one', 'not measured', 'one by key: the record changed meanwhile');
  }
  const fields = differingFields(row.json, alone.json).slice(0, 5).join(', ');
  const text = `one by key: ${fields} differs from the list. If only that changes, name it in VOLATILE_FIELDS`;
  return result('one', 'warning', text);
}

function goneText(reply: Reply): readonly Measurement[] {
  const what = 'a key that never was';
  if (isRefusal(reply)) {
    const text = `${what}: ${replyText(reply)}, which is not in gone`;
    // A status for malformed requests may mean that the invented key has another form than the API's keys.
    const isOfForm = reply.refusedWith === 400 || reply.refusedWith === 422;
    return result('one', isOfForm ? 'not measured' : 'refuted', text);
  }
  if (reply.isGone) return result('one', 'not refuted', `${what}: not there`);
  if (reply.rows.length === 0) return result('one', 'not refuted', `${what}: an empty list`);
  return result('one', 'refuted', `${what}: ${replyText(reply)}`);
}

/** The experiments, the most valuable first: the last ones are skipped if there are too many requests. */
export const EXPERIMENTS: readonly Experiment[] = [
  ...[order(0), key, updated, limit, offsets, behind, one, dates, total, end],
  ...[unknownCursor, unknownParameter, twiceTheLimit, longAgo],
];

/** Sent last: the first page again after a pause. A request is kept for it. */
export const LAST_EXPERIMENT: Experiment = order(PAUSE_MS);

function isSame(left: Row, right: Row): boolean {
  return canonicalJson(left.json) === canonicalJson(right.json);
}

/** Returns the record with the latest modification time. */
function newestOf({ rows }: Page): (Row & { readonly at: number }) | undefined {
  let newest: (Row & { readonly at: number }) | undefined;
  for (const row of rows) {
    if (row.at === null || row.key === undefined) continue;
    if (newest === undefined || row.at > newest.at) newest = { ...row, at: row.at };
  }
  return newest;
}

function durationText(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 3_600_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 2 * A_DAY_MS
    ? `${Math.round(ms / 3_600_000)} h`
    : `${Math.round(ms / A_DAY_MS)} days`;
}
