// The simulated API's responses: login and pages, in the variants that the option `readings` selects.

import { listPage, selectIds, type Pagination } from './list-page.ts';
import type { PageFault } from './faults.ts';
import { parseListQuery, type ParsedListQuery } from './list-query.ts';
import type { Readings, SandboxSettings, Zone } from './options.ts';
import { Random, mix } from './random.ts';
import { RULES, type RecordKey, type Resource } from './resources.ts';
import type { RecordStore } from './store.ts';
import type { Tokens } from './tokens.ts';

/** An HTTP response of the simulated API. Faults such as `truncate` or `slow` can still change how it is sent. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Builds the responses to one account's requests, and applies the faults that change the content of a page. The HTTP server applies quotas
 * and all other faults.
 */
export class SandboxApi {
  readonly #settings: SandboxSettings;
  readonly #store: RecordStore;
  readonly #tokens: Tokens;
  readonly #hidden: Hidden;
  readonly #clock: () => number;
  /** Random numbers that choose which records of a page a fault affects. */
  readonly #random: Random;
  #lists = 0;
  /**
   * Last count of each list's records, and when it was made, in epoch ms. Requests without filters report this count as `total_records`
   * until it is `totalAgeMs` old.
   */
  readonly #counts = new Map<Resource, { readonly at: number; readonly total: number }>();

  /** @param clock Returns the time of the sandbox's server, in epoch ms. */
  constructor(
    settings: SandboxSettings,
    store: RecordStore,
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

  /**
   * Returns the response to a login: an access token, or status 400 if the API key is not that of the account.
   *
   * @param apiKey The API key in the login's body, as {@link apiKeyIn} returns it.
   */
  async login(apiKey: unknown): Promise<ApiResponse> {
    if (apiKey !== this.#settings.apiKey) return errorResponse(400, 'Invalid API key');
    const { tokenLifeMs, readings } = this.#settings;
    const expiresIn = { ms: tokenLifeMs, us: tokenLifeMs * 1_000, s: tokenLifeMs / 1_000 };
    return jsonResponse(readings.success === 'ok' ? 200 : 201, {
      accessToken: await this.#tokens.issue(),
      expiresIn: Math.round(expiresIn[readings.expiresIn]),
    });
  }

  /**
   * Returns the response to a request for a page of a list.
   *
   * @param token The request's access token, as {@link bearerTokenIn} returns it.
   * @param fault Fault to apply to the page, if the request succeeds.
   */
  async list(
    resource: Resource,
    params: URLSearchParams,
    token: string | undefined,
    fault?: PageFault,
  ): Promise<ApiResponse> {
    const { readings, shuffleTies, replicaLagMs } = this.#settings;
    if (token === undefined || !(await this.#tokens.accepts(token))) {
      return unauthorized(readings.unauthorized);
    }
    const query = parseListQuery(params, RULES[resource], readings, this.#clock());
    if (typeof query === 'string') return errorResponse(400, query);
    this.#lists += 1;
    const isOfReplica = replicaLagMs > 0 && this.#lists % 2 === 0;
    const table = isOfReplica ? this.#store.replica(resource) : this.#store.table(resource);
    const body = listPage(table, query, {
      ...this.#settings,
      estimate: (total) => this.#estimate(resource, query, total),
      shuffle: shuffleTies ? this.#lists : undefined,
      hidden: this.#hidden.of(resource),
      fault: fault && { ...fault, random: this.#random },
    });
    const { stampZone } = readings;
    const shown = stampZone ? Buffer.from(withLocalStamps(body.toString(), stampZone)) : body;
    const headers = { 'content-type': `application/json; charset=${readings.charset}` };
    const status = readings.success === 'ok' ? 200 : 203;
    return { status, headers, body: inCharset(inEnvelope(shown, readings), readings) };
  }

  /**
   * Returns the `total_records` to report for a query that `total` records match: `total`, rounded to a multiple of `totalStep`. For a
   * query without a filter, a count made less than `totalAgeMs` ago replaces `total`.
   */
  #estimate(resource: Resource, query: ParsedListQuery, total: number): number {
    const { totalStep, totalAgeMs } = this.#settings;
    const now = this.#clock();
    const isWhole = query.window === undefined && query.number === undefined;
    let count = { at: now, total };
    const last = this.#counts.get(resource);
    if (isWhole && last && now - last.at < totalAgeMs) count = last;
    else if (isWhole) this.#counts.set(resource, count);
    return Math.round(count.total / totalStep) * totalStep;
  }

  /**
   * Whether a list request asks for a page that contains the record. An approximation, which ignores the replica, `shuffleTies`, `totalCap`
   * and `behindEnd`.
   */
  holds(resource: Resource, params: URLSearchParams, key: RecordKey): boolean {
    const { readings, sort } = this.#settings;
    const query = parseListQuery(params, RULES[resource], readings, this.#clock());
    if (typeof query === 'string') return false;
    const table = this.#store.table(resource);
    const { ids } = selectIds(table, query, { sort, hidden: this.#hidden.of(resource) });
    return ids.includes(table.idOf(key));
  }

  tooMany(waitMs: number): ApiResponse {
    const { status, retryAfter, body } = this.#settings.readings.rateLimited;
    const answer =
      body === 'html'
        ? htmlResponse(status, 'Too Many Requests')
        : errorResponse(status, 'Rate limit exceeded');
    const seconds = String(Math.max(1, Math.ceil(waitMs / 1_000)));
    const headers = retryAfter ? { ...answer.headers, 'retry-after': seconds } : answer.headers;
    return { ...answer, headers };
  }
}

const STAMP = /"(created_at|updated_at)":"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g;

/** Returns a response's text with `created_at` and `updated_at` in the zone's local time, written without a zone. */
function withLocalStamps(text: string, { minutes, savingEndsAt = -Infinity }: Zone): string {
  return text.replace(STAMP, (_, field: string, stamp: string) => {
    const at = Date.parse(stamp);
    const aheadMs = minutes * 60_000 + (at < savingEndsAt ? 3_600_000 : 0);
    return `"${field}":"${new Date(at + aheadMs).toISOString().slice(0, -1)}"`;
  });
}

/** Returns a list response with its pagination in the format that the option `envelope` selects. */
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

function unauthorized(style: Readings['unauthorized']): ApiResponse {
  switch (style) {
    case 'redirect':
      return { ...htmlResponse(302, 'Found'), headers: { location: '/login' } };
    case 'json':
      return jsonResponse(200, { error: 'Unauthenticated.' });
    case 'html':
      return htmlResponse(200, 'Log in');
    case 500:
      return jsonResponse(500, { message: 'jwt invalid' });
    default:
      return errorResponse(style, 'Missing, invalid or expired token');
  }
}

export function jsonResponse(status: number, value: object): ApiResponse {
  const body = Buffer.from(JSON.stringify(value));
  return { status, headers: { 'content-type': 'application/json; charset=utf-8' }, body };
}

export function errorResponse(status: number, message: string): ApiResponse {
  return jsonResponse(status, { statusCode: status, message });
}

export function htmlResponse(status: number, title: string): ApiResponse {
  const body = Buffer.from(`<!doctype html><title>${title}</title><h1>${title}</h1>\n`);
  return { status, headers: { 'content-type': 'text/html; charset=utf-8' }, body };
}

export function bearerTokenIn(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
}

/** Returns the value of `apiKey` in a login's body, of any type; undefined if there is none. */
export function apiKeyIn(text: string): unknown {
  try {
    const body = JSON.parse(text) as unknown;
    return typeof body === 'object' && body !== null && 'apiKey' in body ? body.apiKey : undefined;
  } catch {
    return undefined; // not JSON, so there is no key: the caller responds with 400
  }
}

/**
 * The option `wrongIndexMs` hides the fraction `share` of each list for `wrongIndexMs` ms at a time: first `afterMs` ms after the sandbox's
 * start, then every `everyMs` ms.
 */
const WRONG = { share: 0.05, afterMs: 60_000, everyMs: 600_000 } as const;

/** Records that lists omit although they exist: a share of each list, chosen by id and seed. */
export class Hidden {
  readonly #seed: number;
  readonly #wrongIndexMs: number;
  readonly #clock: () => number;
  readonly #startedAt: number;
  readonly #shares = new Map<Resource, Set<{ readonly share: number }>>();

  constructor({ seed, wrongIndexMs }: SandboxSettings, clock: () => number) {
    this.#seed = mix(seed, 0x41d);
    this.#wrongIndexMs = wrongIndexMs;
    this.#clock = clock;
    this.#startedAt = clock();
  }

  /**
   * Hides a share of a list's records.
   *
   * @param share From 0 to 1. A larger share also hides every record that a smaller share hides.
   * @returns a function that shows the records again.
   * @throws RangeError if the share is out of range.
   */
  add(resource: Resource, share: number): () => void {
    if (!(share >= 0 && share <= 1))
      throw new RangeError(
        `the share of the records that the sandbox hides must be from 0 to 1, got ${share}`,
      );
    const shares = this.#shares.get(resource) ?? new Set();
    this.#shares.set(resource, shares);
    const entry = { share };
    shares.add(entry);
    return () => void shares.delete(entry);
  }

  /**
   * Returns a function that reports whether the list currently omits the record with the given id (a simulated fault); undefined if the
   * list omits no records.
   */
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
