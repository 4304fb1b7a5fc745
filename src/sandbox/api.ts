// Answers of the API to one account: login, pages, what they look like under other readings of its description.

import type { Pagination } from './list-page.ts';
import type { PageFault } from './faults.ts';
import { listPage, selectIds } from './list-page.ts';
import { parseListQuery } from './list-query.ts';
import type { ListQuery } from './list-query.ts';
import type { Readings, Settings, Zone } from './options.ts';
import { Random, mix } from './random.ts';
import { RULES } from './resources.ts';
import type { RecordKey, Resource } from './resources.ts';
import type { Store } from './store.ts';
import type { Tokens } from './tokens.ts';

/** An answer before anything goes wrong with it. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** What the API answers to one account, apart from quotas and faults. */
export class Api {
  readonly #settings: Settings;
  readonly #store: Store;
  readonly #tokens: Tokens;
  readonly #hidden: Hidden;
  readonly #clock: () => number;
  /** For what goes wrong with pages. */
  readonly #random: Random;
  #lists = 0;
  /** The newest count of each whole list. */
  readonly #counts = new Map<Resource, { readonly at: number; readonly total: number }>();

  /** @param clock the server's clock, in epoch ms. */
  constructor(
    settings: Settings,
    store: Store,
    tokens: Tokens,
    hidden: Hidden,
    clock: () => number,
  ) {
    this.#settings = settings;
    this.#store = store;
    this.#tokens = tokens;
    this.#hidden = hidden;
    this.#clock = clock;
    this.#random = new Random(settings.seed, 0xfa9e);
  }

  /** @param apiKey as {@link apiKeyIn} found it. */
  async login(apiKey: unknown): Promise<Answer> {
    if (apiKey !== this.#settings.apiKey) return complaint(400, 'Invalid API key');
    const { tokenLifeMs, readings } = this.#settings;
    const expiresIn = { ms: tokenLifeMs, us: tokenLifeMs * 1_000, s: tokenLifeMs / 1_000 };
    return json(readings.success === 'ok' ? 200 : 201, {
      accessToken: await this.#tokens.issue(),
      expiresIn: Math.round(expiresIn[readings.expiresIn]),
    });
  }

  /**
   * @param token as {@link tokenIn} found it.
   * @param fault what is to go wrong with the page, if there comes one.
   */
  async list(
    resource: Resource,
    params: URLSearchParams,
    token: string | undefined,
    fault?: PageFault,
  ): Promise<Answer> {
    const { readings, sort, shuffleTies, replicaLagMs, totalCap } = this.#settings;
    if (token === undefined || !(await this.#tokens.accepts(token))) {
      return unauthorized(readings.unauthorized);
    }
    const query = parseListQuery(params, RULES[resource], readings, this.#clock());
    if (typeof query === 'string') return complaint(400, query);
    const hidden = this.#hidden.of(resource);
    this.#lists += 1;
    const isOfReplica = replicaLagMs > 0 && this.#lists % 2 === 0;
    const table = isOfReplica ? this.#store.replica(resource) : this.#store.table(resource);
    const body = listPage(table, query, {
      ...{ sort, totalCap },
      estimate: (total) => this.#estimate(resource, query, total),
      readings,
      ...(shuffleTies && { shuffle: this.#lists }),
      ...(hidden && { hidden }),
      ...(fault && { fault: { ...fault, random: this.#random } }),
    });
    const { stampZone } = readings;
    const shown = stampZone ? Buffer.from(withLocalStamps(body.toString(), stampZone)) : body;
    const headers = { 'content-type': `application/json; charset=${readings.charset}` };
    const status = readings.success === 'ok' ? 200 : 203;
    return { status, headers, body: inCharset(inEnvelope(shown, readings), readings) };
  }

  /** `total_records` for the true number of records that match a query. */
  #estimate(resource: Resource, query: ListQuery, total: number): number {
    const { totalStep, totalAgeMs } = this.#settings;
    const now = this.#clock();
    const isWhole = query.window === undefined && query.number === undefined;
    let count = { at: now, total };
    const last = this.#counts.get(resource);
    if (isWhole && last && now - last.at < totalAgeMs) count = last;
    else if (isWhole) this.#counts.set(resource, count);
    return Math.round(count.total / totalStep) * totalStep;
  }

  /** Whether the answer to a request would hold a record, as far as can be told without shuffled ties. */
  holds(resource: Resource, params: URLSearchParams, key: RecordKey): boolean {
    const { readings, sort } = this.#settings;
    const query = parseListQuery(params, RULES[resource], readings, this.#clock());
    if (typeof query === 'string') return false;
    const table = this.#store.table(resource);
    const hidden = this.#hidden.of(resource);
    const { ids } = selectIds(table, query, { sort, ...(hidden && { hidden }) });
    return ids.includes(table.idOf(key));
  }

  /** The answer over the quota. */
  tooMany(waitMs: number): Answer {
    const { status, retryAfter, body } = this.#settings.readings.rateLimited;
    const answer =
      body === 'html'
        ? page(status, 'Too Many Requests')
        : complaint(status, 'Rate limit exceeded');
    const seconds = String(Math.max(1, Math.ceil(waitMs / 1_000)));
    const headers = retryAfter ? { ...answer.headers, 'retry-after': seconds } : answer.headers;
    return { ...answer, headers };
  }
}

const STAMP = /"(created_at|updated_at)":"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g;

/** The JSON of an answer whose records are stamped in local time, without a zone. */
function withLocalStamps(text: string, { minutes, savingEndsAt = -Infinity }: Zone): string {
  return text.replace(STAMP, (_, field: string, stamp: string) => {
    const at = Date.parse(stamp);
    const aheadMs = minutes * 60_000 + (at < savingEndsAt ? 3_600_000 : 0);
    return `"${field}":"${new Date(at + aheadMs).toISOString().slice(0, -1)}"`;
  });
}

/** A page with its pagination written in another way than described. */
function inEnvelope(body: Buffer, { envelope }: Readings): Buffer {
  if (envelope === 'described') return body;
  const { data, pagination } = JSON.parse(body.toString()) as {
    readonly data: readonly unknown[];
    readonly pagination: Pagination;
  };
  if (envelope === 'no-totals') {
    return Buffer.from(
      JSON.stringify({ data, pagination: { ...pagination, total_records: undefined } }),
    );
  }
  if (pagination.total_records === 0) return Buffer.from('{"data":null,"pagination":[]}');
  const loose = Object.entries(pagination).map(([name, value]) => [
    name,
    typeof value === 'boolean' ? Number(value) : String(value),
  ]);
  return Buffer.from(JSON.stringify({ data, pagination: Object.fromEntries(loose) as object }));
}

function inCharset(body: Buffer, { charset }: Readings): Buffer {
  if (charset === 'utf-8') return body;
  return Buffer.from(body.toString().replace(/[^\0-\xff]/gu, '?'), 'latin1');
}

/** The answer to a token that is not accepted. */
function unauthorized(style: Readings['unauthorized']): Answer {
  switch (style) {
    case 'redirect':
      return { ...page(302, 'Found'), headers: { location: '/login' } };
    case 'json':
      return json(200, { error: 'Unauthenticated.' });
    case 'html':
      return page(200, 'Log in');
    case 500:
      return json(500, { message: 'jwt invalid' });
    default:
      return complaint(style, 'Missing, invalid or expired token');
  }
}

export function json(status: number, value: object): Answer {
  const body = Buffer.from(JSON.stringify(value));
  return { status, headers: { 'content-type': 'application/json; charset=utf-8' }, body };
}

export function complaint(status: number, message: string): Answer {
  return json(status, { statusCode: status, message });
}

export function page(status: number, title: string): Answer {
  const body = Buffer.from(`<!doctype html><title>${title}</title><h1>${title}</h1>\n`);
  return { status, headers: { 'content-type': 'text/html; charset=utf-8' }, body };
}

/** The token in a header `Authorization`. */
export function tokenIn(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
}

/** The key in a login's body; whatever stands in its place. */
export function apiKeyIn(text: string): unknown {
  try {
    const body = JSON.parse(text) as unknown;
    return typeof body === 'object' && body !== null && 'apiKey' in body ? body.apiKey : undefined;
  } catch {
    return undefined; // no JSON, so no key: the caller answers 400
  }
}

/** Share of the records that a wrong index leaves out, from when on after the start, and how often, in ms. */
const WRONG = { share: 0.05, afterMs: 60_000, everyMs: 600_000 } as const;

/** Which records the lists hide although they are there: a share of them, told by key and seed. */
export class Hidden {
  readonly #seed: number;
  readonly #wrongIndexMs: number;
  readonly #clock: () => number;
  readonly #startedAt: number;
  readonly #shares = new Map<Resource, Set<{ readonly share: number }>>();

  /**
   * @param settings `wrongIndexMs`: how long all lists hide some records now and then, ms.
   * @param clock ms.
   */
  constructor(
    { seed, wrongIndexMs }: { readonly seed: number; readonly wrongIndexMs: number },
    clock: () => number,
  ) {
    this.#seed = mix(seed, 0x41d);
    this.#wrongIndexMs = wrongIndexMs;
    this.#clock = clock;
    this.#startedAt = clock();
  }

  /**
   * @param share from 0 to 1; a larger one hides what a smaller one does, and more.
   * @returns a function that shows them again.
   * @throws RangeError when there is no such share.
   */
  add(resource: Resource, share: number): () => void {
    if (!(share >= 0 && share <= 1)) throw new RangeError(`no share from 0 to 1: ${share}`);
    const shares = this.#shares.get(resource) ?? new Set();
    this.#shares.set(resource, shares);
    const entry = { share };
    shares.add(entry);
    return () => void shares.delete(entry);
  }

  /** Whether a list hides the record of this id; undefined when it hides none. */
  of(resource: Resource): ((id: number) => boolean) | undefined {
    const shares = [...(this.#shares.get(resource) ?? [])].map(({ share }) => share);
    const limit = Math.max(this.#isIndexWrong() ? WRONG.share : 0, ...shares) * 2 ** 32;
    return limit > 0 ? (id) => mix(this.#seed, id) < limit : undefined;
  }

  #isIndexWrong(): boolean {
    const since = this.#clock() - this.#startedAt - WRONG.afterMs;
    return since >= 0 && since % WRONG.everyMs < this.#wrongIndexMs;
  }
}
