// The experiments of `check --measure`: which requests each sends, and what it concludes from the responses. All are pure functions.

import { isPagedByOffset, sendsLimit, totalRequestOf } from '../description/description.ts';
import type { ListDescription } from '../description/description.ts';
import { needsKeyOrder, showsEnd } from '../description/levels.ts';
import { keyOrderOf } from '../streams/paging/reading-proofs.ts';
import type { TimeFormat } from '../description/time-format.ts';
import { absentKey, countText, differingFields, isSame, keysOf, replyText } from './replies.ts';
import type { Measurement, Question, Reply, Row, Verdict } from './replies.ts';

/** Input of the experiments of `check --measure`: a list's description, its first page, and how its requests are made. */
export interface Facts {
  readonly list: ListDescription;
  readonly times: TimeFormat;
  /** Resolution of the dates in requests, in ms: 1,000 if the API's date format has whole seconds. */
  readonly unitMs: number;
  /** Page size of the first page's request. */
  readonly size: number;
  readonly first: Reply;
  /** Number of records in the list, as reported with the first page or by a separate request for the total; undefined if unknown. */
  readonly total: number | undefined;
  /** Time by the local clock at the response with the list's first page, in epoch ms. */
  readonly now: number;
}

/** A {@link Measurement} that an experiment returns. Its `claim` may be left out; default: the `claim` of the experiment. */
export type Finding = Omit<Measurement, 'claim'> & Partial<Pick<Measurement, 'claim'>>;

export interface Experiment {
  readonly claim: Measurement['claim'];
  /** Short description of the requests that the experiment sends, such as `second page`. The text of each finding begins with it. */
  readonly name: string;
  /** Minimum time from the response with the list's first page to the first request of this experiment, in ms. Default 0. */
  readonly afterMs?: number;
  /**
   * Returns the requests that the experiment sends; `[]` if the `facts` are enough for a verdict. Returns a text with the reason if the
   * experiment does not apply to the list.
   */
  readonly questions: (facts: Facts) => readonly Question[] | string;
  /**
   * Verdict of the experiment if the API refuses any of its requests; `judge` is then not called. Default: `judge` is called, and a refusal
   * is one of its `replies`.
   */
  readonly ifRefused?: Verdict;
  readonly judge: (facts: Facts, replies: readonly Reply[]) => Finding | readonly Finding[];
}

/**
 * Number of records by which the begin or the end of a page may differ from what an experiment expects, because the list changes meanwhile.
 * If it is too small, a busy list looks like wrong paging. If it is too large, offsets that are wrong by up to this number are not noticed.
 */
const DRIFT = 2;
/**
 * Minimum number of records on the first page for the experiment `smaller pages`, whose pages lie within the first 20 records of the list.
 */
const ENOUGH = 20;
/** Page size in the experiment `last page and beyond`, in records, if the list has more than one page. */
const TAIL = 10;
const A_DAY_MS = 86_400_000;
/** Largest difference between two time zones, in ms. */
const ZONES_MS = 26 * 3_600_000;
const PAUSE_MS = 60_000;

const refuted = (measured: string): Finding => ({ verdict: 'refuted', measured });
const stands = (measured: string): Finding => ({ verdict: 'not refuted', measured });
const warning = (measured: string): Finding => ({ verdict: 'warning', measured });
const unmeasured = (measured: string): Finding => ({ verdict: 'not measured', measured });

const EMPTY = 'the list is empty';
const NO_DATES = 'the description has no dates';
const NO_LIMIT = 'the description has no limit that is sent';

/** Whether the first page is the whole list, as far as its response says. */
const isWhole = ({ first, list, size }: Facts) =>
  first.hasNext !== true && (list.paging === 'none' || first.rows.length < size);

/** Returns the index in `page` of the first record of `other`; -1 if `page` does not have that record. */
const placeIn = (page: Reply, other: Reply) =>
  page.rows.findIndex(({ key }) => key !== undefined && key === other.rows[0]?.key);

const placeText = (place: number) =>
  place < 0 ? 'a record that is not on the first page' : `record ${place} of the first page`;

const key: Experiment = {
  claim: 'key',
  name: 'first page',
  questions: ({ first }) => (first.rows.length === 0 ? EMPTY : []),
  judge: ({ first, list }) => {
    const keys = keysOf(first);
    const doubles = keys.length - new Set(keys).size;
    const without = first.rows.length - keys.length;
    const of = replyText(first);
    if (keys.length === 0) return refuted(`none of ${of} has a key`);
    if (doubles > 0) return refuted(`${doubles} of ${of} repeat a key`);
    if (without > 0) return warning(`${without} of ${of} have no key and would be dead letters`);
    const unsorted =
      'not sorted by the key, so full scans are not anchored; sort by it in query if you can';
    return [
      stands(`present in all of ${of}, and unique`),
      ...(needsKeyOrder(list) && keyOrderOf(keys) === 'none'
        ? [{ claim: 'order', ...warning(unsorted) } as const]
        : []),
    ];
  },
};

const updated: Experiment = {
  claim: 'updated',
  name: 'first page',
  questions: ({ first, list }) => {
    if (list.updated.length === 0) return 'the description has no updated';
    return first.rows.length === 0 ? EMPTY : [];
  },
  judge: ({ first, list }) => {
    const { rows, serverTime = Infinity } = first;
    const stamps = rows.flatMap(({ at }) => at ?? []);
    const of = replyText(first);
    if (stamps.length === 0) {
      const text = `none of ${of} has a modification time`;
      return list.dates === undefined ? warning(text) : refuted(text);
    }
    const ahead = stamps.filter((at) => at > serverTime + 60_000).length;
    if (ahead === stamps.length)
      return refuted(`the modification times of all of ${of} are later than the server's Date`);
    const unit = [A_DAY_MS, 60_000, 1_000].find((ms) => stamps.every((at) => at % ms === 0)) ?? 1;
    const missing = rows.length - stamps.length;
    const text = [
      missing === 0 ? `present in all of ${of}` : `${missing} of ${of} have no modification time`,
      `resolution ${durationText(unit)}`,
      `duplicate times: ${stamps.length - new Set(stamps).size}`,
      ...(ahead > 0 ? [`${ahead} later than the server's Date`] : []),
    ].join(', ');
    return missing > 0 || ahead > 0 || (unit > 1_000 && rows.length > 5)
      ? warning(text)
      : stands(text);
  },
};

/**
 * Creates an experiment that tests whether unchanged records keep their order. It requests the first page again, at least `afterMs` ms
 * after the first response, and compares the order.
 */
const order = (name: string, afterMs = 0): Experiment => ({
  claim: 'order',
  ...{ name, afterMs },
  questions: ({ first, size }) =>
    first.rows.length < 2 ? 'the list has fewer than 2 records' : [{ offset: 0, pageSize: size }],
  ifRefused: 'not measured',
  judge: ({ first }, [again]) => {
    const before = new Map(first.rows.map((row) => [row.key, row]));
    const pairs = again!.rows.flatMap((row) => {
      const earlier = row.key === undefined ? undefined : before.get(row.key);
      return earlier ? [[earlier, row] as const] : [];
    });
    if (pairs.length === 0) return unmeasured('no record of the first response is in the second');
    const stood = new Set(pairs.flatMap(([one, other]) => (isSame(one, other) ? one.key! : [])));
    const inOrder = (page: Reply) => keysOf(page).filter((each) => stood.has(each));
    if (inOrder(first).join('\n') !== inOrder(again!).join('\n')) {
      return refuted(
        `${countText(stood.size)} unchanged in the second response, but in another order`,
      );
    }
    const unstamped = pairs.filter(([one, { at, key: same }]) => {
      return at !== null && one.at === at && !stood.has(same!);
    });
    const gone = first.rows.length - pairs.length;
    const text = `${countText(gone)} missing from the second response, ${stood.size} unchanged and in the same order`;
    if (unstamped.length === 0) return stands(text);
    const fields = [...new Set(unstamped.flatMap((pair) => differingFields(...pair)))].join(', ');
    return warning(`${text}; ${fields} changed although the modification time did not`);
  },
});

const limit: Experiment = {
  claim: 'limit',
  name: 'first page',
  questions: ({ list }) => (sendsLimit(list) ? [] : NO_LIMIT),
  judge: ({ first, size, total = 0 }) => {
    const { length } = first.rows;
    const text = `${countText(length)} returned for a page size of ${size}`;
    if (length > size) return refuted(`${text}: the page size is ignored`);
    if (length === size) return stands(text);
    if (first.hasNext === true || total > length) {
      return refuted(`${text}, although the list has more: pages are capped`);
    }
    return unmeasured(`the list has only ${countText(length)}`);
  },
};

const twiceTheLimit: Experiment = {
  claim: 'limit',
  name: 'twice the limit',
  questions: (facts) => {
    const { size, list } = facts;
    if (!sendsLimit(list)) return NO_LIMIT;
    return isWhole(facts) ? 'one page holds the list' : [{ offset: 0, pageSize: 2 * size }];
  },
  ifRefused: 'not refuted',
  judge: ({ size }, [reply]) => {
    const { length } = reply!.rows;
    return stands(
      `${countText(length)} returned, ${length > size ? 'so the limit may be higher' : 'so the server caps pages without an error'}`,
    );
  },
};

/** Experiment: requests two smaller pages that begin within the first page, and looks for the first record of each in the first page. */
const offsets: Experiment = {
  claim: 'paging',
  name: 'smaller pages',
  questions: ({ list, first }) => {
    if (!isPagedByOffset(list)) return 'requests send no offset and page size';
    if (first.rows.length < ENOUGH) return `the first page has fewer than ${ENOUGH} records`;
    return smallPages(list);
  },
  ifRefused: 'refuted',
  judge: ({ list, first }, replies) => {
    const asked = smallPages(list);
    const places = replies.map((reply) => placeIn(first, reply));
    // Records inserted at the front meanwhile shift both pages by the same number.
    const shifts = asked.map(({ offset }, nth) => places[nth]! - offset);
    const isMoved = Math.abs(shifts[0]! - shifts[1]!) > DRIFT;
    return asked.map(({ offset, pageSize }, nth): Finding => {
      const { length } = replies[nth]!.rows;
      const text = `${pageSize} records requested from offset ${offset}, ${length} returned, beginning with ${placeText(places[nth]!)}`;
      const isWrong = isMoved || places[nth]! < 0 || length !== pageSize;
      return isWrong ? refuted(text) : stands(text);
    });
  },
};

const smallPages = ({ paging }: ListDescription) => [
  { offset: 15, pageSize: 5 },
  { offset: paging === 'offset' ? 7 : 10, pageSize: 10 },
];

/**
 * Experiment that tests whether pages follow each other. Compares the first page with the second page or, if pages are requested by key,
 * with the page after the 5th key. Does not apply if pages are requested by offset, or if the list is not paged.
 */
const behind: Experiment = {
  claim: 'paging',
  name: 'second page',
  questions: ({ list, first, size }) => {
    if (isPagedByOffset(list)) return 'pages are requested by offset';
    if (list.paging === 'none') return 'one response is the list';
    const isAfter = list.paging === 'after';
    const [fifth, sixth] = first.rows.slice(4);
    if (isAfter && !sixth) return 'the list has fewer than 6 records';
    if (!isAfter && first.hasNext !== true) return 'one page holds the list';
    const next = list.paging === 'page' ? String(list.first + 1) : first.next;
    const cursor = isAfter ? fifth?.key : next;
    const offset = isAfter ? 5 : first.rows.length;
    return cursor === undefined ? [] : [{ cursor, offset, pageSize: size }];
  },
  ifRefused: 'refuted',
  judge: ({ list, first }, [reply]) => {
    if (!reply) return refuted('the response reports a next page, but has no cursor for it');
    if (list.paging === 'after') {
      const place = placeIn(first, reply);
      const text = `the page after the 5th key begins with ${placeText(place)}`;
      return place >= 0 && Math.abs(place - 5) <= DRIFT ? stands(text) : refuted(text);
    }
    const known = new Set(keysOf(first));
    const again = keysOf(reply).filter((each) => known.has(each)).length;
    const text = `${replyText(reply)}, of which ${again} also on the first page`;
    return again > reply.rows.length / 2 ? refuted(text) : stands(text);
  },
};

const unknownCursor: Experiment = {
  claim: 'paging',
  name: 'page after an unknown key or cursor',
  questions: ({ list, first, size }) => {
    if (list.paging !== 'after' && list.paging !== 'cursor') return 'pages have no key or cursor';
    if (first.rows.length < 2) return 'the list has fewer than 2 records';
    return [{ cursor: absentKey(keysOf(first)), offset: 0, pageSize: size }];
  },
  ifRefused: 'not refuted',
  judge: ({ first, list }, [reply]) => {
    if (placeIn(first, reply!) !== 0) return stands(replyText(reply!));
    // Pages after a key overlap, so a scan notices a page that is not the one requested. Pages after a cursor do not.
    const effect =
      list.paging === 'after'
        ? 'a scan notices this after a deletion, reads pages again and misses no record'
        : 'a scan whose cursor has expired may start over unnoticed';
    return warning(`the API returns the first page, without an error; ${effect}`);
  },
};

/**
 * Experiment: compares the list's total with the number of records on the first page. They must be equal if the first page is the whole
 * list; otherwise the total must not be smaller.
 */
const total: Experiment = {
  claim: 'total',
  name: 'whole list',
  questions: ({ list }) => {
    if (list.total === undefined) return 'the description has no total';
    return totalRequestOf(list) ? [{ isTotal: true }] : [];
  },
  ifRefused: 'refuted',
  judge: (facts, [reply]) => {
    const { length } = facts.first.rows;
    const count = reply ? reply.total : facts.total;
    if (count === undefined) return refuted('the response has no number at its place');
    const isWrong = isWhole(facts) ? count !== length : count < length;
    const text = `total ${count}, first page ${length}`;
    return isWrong ? refuted(text) : stands(text);
  },
};

/**
 * Experiment: requests the last page (unless it is the first) and the page after it. Checks the total, and whether the responses report the
 * end of the list. Does not apply if the last page can only be reached by reading the whole list.
 */
const end: Experiment = {
  claim: 'more',
  name: 'last page and beyond',
  questions: (facts) => {
    const { list, first, size, total: count } = facts;
    if (list.paging === 'none') return 'one response is the list';
    const last = first.rows.at(-1)?.key;
    if (isWhole(facts) && last === undefined) return EMPTY;
    if (isWhole(facts) && list.paging === 'after') {
      return [{ cursor: last!, offset: first.rows.length, pageSize: size }];
    }
    if (!isPagedByOffset(list))
      return 'the last page can only be reached by reading the whole list';
    if (isWhole(facts)) return [{ offset: size, pageSize: size }];
    if (count === undefined || count < 1) return 'no total says where the last page is';
    const offset = lastOffset(count);
    return [offset, offset + TAIL].map((each) => ({ offset: each, pageSize: TAIL }));
  },
  judge: ({ list, first, total: count = 0 }, replies) => {
    const beyond = replies.at(-1)!;
    const last = replies.length > 1 ? replies[0]! : first;
    const found: Finding[] = [];
    const newest = last.total ?? count;
    let grown = 0;
    if (replies.length > 1) {
      const left = newest - lastOffset(count);
      const expected = Math.min(left, TAIL);
      grown = Math.max(0, left - TAIL);
      const text = `${replyText(last)} on the last page, ${expected} expected (total ${newest}, page size ${TAIL})`;
      const isThere = Math.abs(expected - last.rows.length) <= DRIFT;
      found.push({ claim: 'total', ...(isThere ? stands(text) : refuted(text)) });
    }
    if (beyond.rows.length > grown + DRIFT) {
      return [
        ...found,
        { claim: 'total', ...refuted(`${replyText(beyond)} beyond the last page`) },
      ];
    }
    const text = `more is ${String(last.hasNext)} on the last page; beyond it: ${replyText(beyond)}`;
    if (beyond.rows.length > 0 || newest !== (beyond.total ?? newest)) {
      return [...found, unmeasured(`${text}: the list grew meanwhile`)];
    }
    if (!showsEnd(list)) {
      return [...found, { claim: 'total', ...stands(`${replyText(beyond)} beyond the last page`) }];
    }
    const isEndless = last.hasNext === true || beyond.hasNext === true;
    return [...found, isEndless ? refuted(text) : stands(text)];
  },
};

const lastOffset = (count: number) => Math.floor((count - 1) / TAIL) * TAIL;

/**
 * Experiment that tests the date parameters with three windows of modification times: a day in 2099, a window that begins at the time of
 * the newest record of the first page, and one that begins later by `unitMs`, the resolution of dates in requests.
 */
const dates: Experiment = {
  claim: 'dates',
  name: 'windows',
  questions: ({ list, first, times, unitMs, now, size }) => {
    if (list.dates === undefined) return NO_DATES;
    const at = newestOf(first)?.at;
    if (at === undefined) return 'no record has a modification time to request';
    const page = { offset: 0, pageSize: size, to: times.write(Math.max(now, at) + 2 * A_DAY_MS) };
    const far = Date.UTC(2099, 0, 1);
    return [
      { ...page, from: times.write(far), to: times.write(far + A_DAY_MS) },
      { ...page, from: times.write(at) },
      { ...page, from: times.write(at + unitMs) },
    ];
  },
  judge: (facts, [far, window, later]) => [
    windowFrom(facts, far!, window!, later!),
    ...totalOfWindow(facts, window!),
  ],
};

function windowFrom({ first, unitMs }: Facts, far: Reply, window: Reply, later: Reply): Finding {
  if (far.rows.length > 0)
    return refuted(`window that begins in 2099: ${replyText(far)}, so dates are ignored`);
  if (window.refusedWith !== undefined) return refuted(replyText(window));
  const { key: wanted, at } = newestOf(first)!;
  const shows = ({ rows }: Reply) => rows.some((row) => row.key === wanted);
  if (!shows(window)) {
    if (window.hasNext === true) return unmeasured('the window has several pages');
    return refuted(
      `a window that begins at a record's time does not contain that record (${replyText(window)}): the start is exclusive, or read in another time zone`,
    );
  }
  const earlyMs = at - Math.min(at, ...window.rows.flatMap((row) => row.at ?? []));
  const early = `a window that begins at a record's time contains records up to ${durationText(earlyMs)} older`;
  if (earlyMs > ZONES_MS) return refuted(`${early}: it does not select by updated`);
  if (earlyMs >= 1_000)
    return warning(`${early}: dates are read as whole days, or in another time zone`);
  const edge = later.rows.some((row) => row.key === wanted && row.at === at)
    ? `so does one that begins ${durationText(unitMs)} later: dates are rounded to coarser units`
    : `one that begins ${durationText(unitMs)} later does not`;
  return stands(`a window that begins at a record's time contains that record; ${edge}`);
}

function totalOfWindow({ list, total: whole }: Facts, window: Reply): Finding[] {
  const { total: count, rows, hasNext } = window;
  if (list.total === undefined || totalRequestOf(list) || count === undefined || hasNext) return [];
  const text = `${countText(rows.length)} in a window whose response has the total ${count}`;
  const whose = count === whole ? ', that of the whole list' : '';
  const finding = count === rows.length ? stands(text) : refuted(text + whose);
  return [{ claim: 'total', ...finding }];
}

const longAgo: Experiment = {
  claim: 'dates',
  name: 'window from 2000',
  questions: ({ list, times, now, size }) => {
    if (list.dates === undefined) return NO_DATES;
    const [from, to] = [times.write(Date.UTC(2000, 0, 1)), times.write(now + 2 * A_DAY_MS)];
    return [{ offset: 0, pageSize: size, from, to }];
  },
  ifRefused: 'warning',
  judge: ({ first }, [reply]) => {
    const isEmpty = reply!.rows.length === 0 && newestOf(first) !== undefined;
    return isEmpty ? refuted(replyText(reply!)) : stands(replyText(reply!));
  },
};

const unknownParameter: Experiment = {
  claim: 'query',
  name: 'an unknown parameter',
  questions: ({ list, first, size }) => {
    if (list.method === 'POST') return 'the list is read by POST';
    return first.rows.length === 0 ? EMPTY : [{ offset: 0, pageSize: size, isUnknown: true }];
  },
  ifRefused: 'not refuted',
  judge: (_, [reply]) =>
    reply!.rows.length > 0
      ? stands('ignored')
      : warning('no records and no error; a misspelled parameter would have the same effect'),
};

const one: Experiment = {
  claim: 'one',
  name: 'one by key',
  questions: ({ list, first }) => {
    if (!list.one) return 'the description has no request for a single record';
    const wanted = first.rows.at(-1)?.key;
    if (wanted === undefined) return 'no record has a key to request';
    if (list.one.digitsOnly && !/^\d+$/.test(wanted)) return 'the key does not consist of digits';
    return [{ key: wanted }, { key: absentKey(keysOf(first)) }];
  },
  judge: ({ first }, [found, absent]) => [
    sameAsInList(first.rows.at(-1)!, found!),
    absence(absent!),
  ],
};

function sameAsInList(row: Row, reply: Reply): Finding {
  const alone = reply.rows.find((each) => each.key === row.key);
  if (!alone)
    return refuted(`the response does not have the requested record (${replyText(reply)})`);
  if (isSame(row, alone)) return stands('the same as in the list');
  if (row.at !== alone.at) return unmeasured('the record changed meanwhile');
  const fields = differingFields(row, alone).join(', ');
  return warning(
    `fields that differ from the list: ${fields}; to publish no event when only they change, add them to VOLATILE_FIELDS`,
  );
}

function absence(reply: Reply): Finding {
  const { refusedWith, isGone, rows } = reply;
  const text = `an unknown key: ${isGone ? 'reported as not found' : replyText(reply)}`;
  // These statuses mean malformed requests: the invented key may have another form than the API's keys.
  if (refusedWith === 400 || refusedWith === 422) return unmeasured(text);
  if (refusedWith !== undefined)
    return refuted(`${text}, which the description does not list in gone`);
  return rows.length > 0 ? refuted(text) : stands(text);
}

/** The experiments of `check --measure`, the most important first, because `MAX_REQUESTS` may not be enough for all of them. */
export const EXPERIMENTS: readonly Experiment[] = [
  ...[order('first page twice'), key, updated, limit, offsets, behind, one, dates, total, end],
  ...[unknownCursor, unknownParameter, twiceTheLimit, longAgo],
];

/** The last experiment of `check --measure`: requests the list's first page again after 60 s. One request is reserved for it. */
export const LAST_EXPERIMENT: Experiment = order('first page after 60 s', PAUSE_MS);

/** Returns the record with the latest modification time; undefined if no record has both a key and a modification time. */
function newestOf({ rows }: Reply): (Row & { readonly at: number }) | undefined {
  const stamped = rows.flatMap((row) =>
    row.at === null || row.key === undefined ? [] : [{ ...row, at: row.at }],
  );
  return stamped.toSorted((left, right) => right.at - left.at)[0];
}

function durationText(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 3_600_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 2 * A_DAY_MS
    ? `${Math.round(ms / 3_600_000)} h`
    : `${Math.round(ms / A_DAY_MS)} days`;
}
