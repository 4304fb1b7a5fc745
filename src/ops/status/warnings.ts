// Warnings about problems that do not stop the service: from hooks about lists, deletions and resyncs, and from repeated retries.

import { cappedListText } from '../../observe/capped-list-text.ts';
import { totalNames } from '../../description/description.ts';
import type { ListDescription } from '../../description/description.ts';
import type { Hooks } from '../../observe/hooks.ts';
import {
  heldDeletionsText,
  unprovenDeletionsText,
  UnprovenSweeps,
} from '../../observe/unpublished-deletions.ts';
import { datesText } from '../../streams/paging/list-dates.ts';
import type { ScanTrouble } from '../../streams/paging/scan-trouble.ts';
import { deletionsOf } from './hook-figures.ts';
import { DEPENDENCIES, dependencyOf } from './causes.ts';
import type { Cause, Dependency } from './causes.ts';
import { errorLine, fewNames, MAX_ERROR, shortened } from './shortened.ts';
import type { Warning } from './status-json.ts';

const A_MINUTE_MS = 60_000;
const TEN_MINUTES_MS = 10 * A_MINUTE_MS;
const AN_HOUR_MS = 60 * A_MINUTE_MS;
/** Value of `forMs` for a warning that is shown until a hook reports the end of its problem, or until the process ends. */
const UNTIL_ENDED = Infinity;

interface ActiveWarning extends Warning {
  readonly until: number;
  readonly count: number;
}

/**
 * Collects warnings about problems that do not stop the service. A warning is shown until a hook reports the end of its problem, or for a
 * fixed time after the problem last occurred.
 */
export class Warnings {
  readonly #now: () => number;
  readonly #retries: RetryWarnings;
  /** Returns the name of a list's total (number of records), such as `total_records`. */
  readonly #totalOf: (resource: string) => string;
  /** Active warnings by kind, list and detail. Their number is small. */
  readonly #shown = new Map<string, ActiveWarning>();
  readonly #unproven = new UnprovenSweeps();
  /** Lists whose current sweep (full scan) has detected more deletions than `DELETE_LIMIT_PERCENT` allows to publish. */
  readonly #held = new Set<string>();

  /**
   * Creates a collection without warnings.
   *
   * @param now Returns the current time, in epoch ms, by a clock that never goes back.
   * @param lists The API's lists.
   */
  constructor(now: () => number, lists: readonly ListDescription[]) {
    this.#now = now;
    this.#totalOf = totalNames(lists);
    this.#retries = new RetryWarnings(now);
  }

  get hooks() {
    return { ...this.#retries.hooks, ...this.#ofLists };
  }

  readonly #ofLists = {
    onHeld: ({ resource, gone, known }) => {
      this.#held.add(resource);
      this.#raise('deletions-held', resource, UNTIL_ENDED, heldDeletionsText(gone, known));
    },
    onSwept: (swept) => {
      const { resource } = swept;
      if (!this.#held.delete(resource)) this.#clear('deletions-held', resource);
      if (deletionsOf(swept) !== 'unknown') {
        this.#unproven.reset(resource);
        this.#clear('deletions-unknown', resource);
        return;
      }
      if (!this.#unproven.add(resource, this.#now())) return;
      const text = unprovenDeletionsText(this.#totalOf(resource));
      this.#raise('deletions-unknown', resource, UNTIL_ENDED, text);
    },
    onRefused: ({ resource, error }) =>
      this.#raise(
        'not-asked',
        resource,
        AN_HOUR_MS,
        (count) =>
          `the API refused requests for single records (${times(count)}): ${errorLine(error)}`,
      ),
    onDiscarded: ({ reason }) =>
      this.#raise(
        'images-discarded',
        null,
        AN_HOUR_MS,
        `the store of published records may be damaged and is being rebuilt from Kafka: ${shortened(reason, MAX_ERROR)}`,
      ),
    onTrouble: ({ resource, trouble, offset }) => {
      const kind = KINDS[trouble] ?? 'list-moved';
      const text = (count: number) =>
        trouble === 'cut'
          ? cappedListText(offset)
          : `${TROUBLES[trouble].replace('TOTAL', this.#totalOf(resource))} (${times(count)})`;
      this.#raise(kind, resource, FOR_MS[trouble] ?? TEN_MINUTES_MS, text, trouble);
    },
    onVolatile: ({ resource, fields }) => {
      const names = fewNames(fields);
      const isWhole = names.join() === fields.join();
      const some = isWhole ? '' : `${fields.length} fields, among them `;
      const setting = isWhole
        ? `set VOLATILE_FIELDS=${names.map((name) => `${resource}:${name}`).join()}`
        : `add each to VOLATILE_FIELDS as ${resource}:/FIELD`;
      const text = `fields that differ in every response are ignored when the pages of a scan are compared; in this list: ${some}${names.join(', ')}. To publish no event when only they change, ${setting}`;
      this.#raise('volatile-fields', resource, UNTIL_ENDED, text, names.join());
    },
    onDates: ({ resource, ...found }) => {
      const text = datesText(found);
      if (text === undefined) this.#clear('dates', resource);
      else this.#raise('dates', resource, UNTIL_ENDED, text);
    },
    onRejected: ({ resource, reason }) =>
      this.#raise(
        'dead-letters',
        resource,
        AN_HOUR_MS,
        (count) =>
          `${count === 1 ? 'a record' : `${count} records`} went to dead letters: ${reason}`,
        reason,
      ),
    onSignalsFailed: ({ error, delayMs }) =>
      this.#raise(
        'signals',
        null,
        delayMs + A_MINUTE_MS,
        `the topic of signals can't be read or written, so requests to publish records again (resyncs) wait: ${errorLine(error)}`,
      ),
  } satisfies Hooks;

  /**
   * Returns the active warnings, the newest first. Omits those about retried calls to a dependency in `causes` (the reasons why the service
   * is not ready).
   */
  all(causes: readonly Cause[]): readonly Warning[] {
    for (const [id, { until }] of this.#shown) if (until <= this.#now()) this.#shown.delete(id);
    const lasting = [...this.#shown.values()]
      .filter(({ kind, count }) => kind !== 'signals' || count >= MANY_RETRIES)
      .map(({ kind, resource, text, at }) => ({ kind, resource, text, at }));
    return [...lasting, ...this.#retries.all(causes)].sort((a, b) => b.at - a.at);
  }

  /**
   * Shows a warning. It replaces an earlier one with the same kind, list and detail.
   *
   * @param forMs How long the warning is shown after the last occurrence of its problem, in ms.
   * @param text Text of the warning, or a function that returns the text, given how often the problem has occurred.
   * @param detail Distinguishes warnings of the same kind and list, such as those about two different troubles of a scan.
   */
  #raise(
    kind: Warning['kind'],
    resource: string | null,
    forMs: number,
    text: string | ((count: number) => string),
    detail = '',
  ): void {
    const id = `${kind} ${resource ?? ''} ${detail}`;
    const at = this.#now();
    const before = this.#shown.get(id);
    const count = before && before.until > at ? before.count + 1 : 1;
    const words = typeof text === 'string' ? text : text(count);
    this.#shown.set(id, { kind, resource, text: words, at, until: at + forMs, count });
  }

  #clear(kind: Warning['kind'], resource: string): void {
    this.#shown.delete(`${kind} ${resource} `);
  }
}

const KINDS: Readonly<Partial<Record<ScanTrouble, Warning['kind']>>> = {
  unsettled: 'list-unsettled',
  cut: 'list-cut',
};

/**
 * How long the warning about a problem of a scan is shown after the last occurrence of the problem, in ms. Problems that are not listed
 * here: ten minutes.
 */
const FOR_MS: Readonly<Partial<Record<ScanTrouble, number>>> = {
  'stepped-back': A_MINUTE_MS,
  cut: 24 * AN_HOUR_MS, // only a full scan detects it again, and a list with dates has about one a day
};

/** Texts of warnings about problems of a scan. `TOTAL` stands for the name of the list's total, such as `total_records`. */
const TROUBLES: Readonly<Record<Exclude<ScanTrouble, 'cut'>, string>> = {
  'stepped-back': 'the list changed during a scan; the scan stepped back and missed nothing',
  adrift: 'the list changes faster than it is scanned: the scan starts over',
  expired: 'the API refused the cursor of the next page: the scan starts over',
  shifted:
    'the cursor of the list acts like an offset: a page repeats records of the page before it, so others may be missed',
  reordered: 'the order of records differs from request to request: the list has no total order',
  short: 'a scan read fewer records than TOTAL says: the list is scanned again',
  unsettled:
    'every scan of the list showed fewer records than TOTAL, or in a changed order: records may be missing in the topic',
  endless: 'the API reports a next page although no new records come: the scan ends there',
  gap: 'every page that contains a certain record fails: the record is left out and retried later; its dead letter has its list offset',
  misplaced:
    'the API begins pages at other offsets than requested: the list is read in pages whose offset is a multiple of their size',
  blind:
    'the API ignores pageSize and changes offset, so pages can not overlap: only the count of records shows that none was missed',
  smaller: 'large pages fail: smaller ones are requested',
};

export const SCAN_TROUBLES: readonly string[] = [...Object.keys(TROUBLES), 'cut'];

/** Number of failures after which a warning about a dependency (Kafka, the API etc.) or about the topic of signals is shown. */
const MANY_RETRIES = 3;
/** How long a warning about retries is shown after the last failed call to the dependency, in ms. */
const SHOWN_FOR_MS = TEN_MINUTES_MS;
/**
 * Minimum time without failures before a list counts as responding again, in ms, from the moment when its retry is due. If it is too small,
 * a list may count as responding although the retry still waits for the quota.
 */
const SILENCE_MS = 60_000;

/** A failed call to a dependency (such as Kafka or the API) without a known success afterwards. */
interface Open {
  readonly what: string;
  readonly resource: string | undefined;
  /** End of the pause before the call is retried, in epoch ms. */
  readonly nextAt: number;
  /** Time from which on the call counts as successful if `answered` is true, in epoch ms. */
  readonly silentUntil: number;
  /** Whether any request with the same `what` (the list, or `login`) has succeeded since the retry was due (`nextAt`). */
  answered: boolean;
}

interface Tried {
  readonly count: number;
  readonly error: unknown;
  readonly at: number;
}

/**
 * Collects warnings about dependencies, such as Kafka or the API, to which calls failed and were retried in the last ten minutes. A warning
 * also says whether the dependency is known to respond again.
 *
 * A list counts as responding again after a successful request and at least {@link SILENCE_MS} without a failure. A success alone is not
 * enough: several requests may be in flight, and hooks do not say which of them failed.
 */
class RetryWarnings {
  readonly #now: () => number;
  /** Dependencies to which a call failed in the last ten minutes. */
  readonly #tried = new Map<Dependency, Tried>();
  /** Failed calls for which no later success is known, by the fields `what` and `resource` of the `onRetry` event. */
  readonly #open = new Map<string, Open>();

  constructor(now: () => number) {
    this.#now = now;
  }

  readonly hooks = {
    onRetry: ({ what, resource, error, delayMs }) => {
      const at = this.#now();
      const dependency = dependencyOf(what);
      const nextAt = at + delayMs;
      const silentUntil = nextAt + Math.max(delayMs, SILENCE_MS);
      const one = { what, resource, nextAt, silentUntil, answered: false };
      this.#open.set(`${what} ${resource ?? ''}`, one); // replaces an earlier failure, which then can't count as resolved
      const before = this.#tried.get(dependency);
      const count = before && before.at + SHOWN_FOR_MS > at ? before.count + 1 : 1;
      this.#tried.set(dependency, { count, error, at });
    },
    onRequest: ({ what, status = 0 }) => {
      if (status < 200 || status > 299) return;
      for (const one of this.#open.values()) {
        if (one.what === what && one.nextAt <= this.#now()) one.answered = true;
      }
    },
    onLogin: () => this.#close(({ what }) => what === 'login'),
    onReady: () => this.#close(({ what, resource }) => what !== 'login' && resource === undefined),
    // A commit shows that Kafka, the registry and the state folder work, but nothing about requests to the API.
    onPublished: (published) =>
      this.#close(
        ({ what, resource = published.resource }) =>
          resource === published.resource && !['login', 'api'].includes(dependencyOf(what)),
      ),
  } satisfies Hooks;

  /**
   * Returns a warning for each dependency with at least {@link MANY_RETRIES} failed calls that is not in `causes`. Ten minutes without a
   * failed call reset the count; a successful call does not.
   */
  all(causes: readonly Cause[]): readonly Warning[] {
    const now = this.#now();
    for (const [dependency, { at }] of this.#tried) {
      if (at + SHOWN_FOR_MS <= now) this.#tried.delete(dependency);
    }
    this.#close(({ answered, silentUntil }) => answered && silentUntil <= now);
    const silent = new Set([...this.#open.values()].map(({ what }) => dependencyOf(what)));
    return [...this.#tried]
      .filter(([dependency, { count }]) => count >= MANY_RETRIES && !causes.includes(dependency))
      .map(([dependency, { count, error, at }]) => ({
        kind: 'tried-again',
        resource: null,
        text: `${DEPENDENCIES[dependency]} was tried again ${times(count)}${silent.has(dependency) ? ', so far without success' : ' and answers now'}; the last error: ${errorLine(error)}`,
        at,
      }));
  }

  #close(isClosed: (one: Open) => boolean): void {
    for (const [id, one] of this.#open) if (isClosed(one)) this.#open.delete(id);
  }
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
