import type { PageFault } from './faults.ts';
import type { Hidden } from './hidden.ts';
import { listPage } from './list-page.ts';
import { parseListQuery } from './list-query.ts';
import type { Settings } from './options.ts';
import { Random } from './random.ts';
import { RULES } from './resources.ts';
import type { Resource } from './resources.ts';
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
    return json(200, {
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
    const { readings, sort, shuffleTies, totalCap, totalStep } = this.#settings;
    if (token === undefined || !(await this.#tokens.accepts(token))) {
      return complaint(readings.unauthorized, 'Missing, invalid or expired token');
    }
    const query = parseListQuery(params, RULES[resource], readings, this.#clock());
    if (typeof query === 'string') return complaint(400, query);
    const hidden = this.#hidden.of(resource);
    const body = listPage(this.#store.table(resource), query, {
      ...{ sort, totalCap, totalStep },
      ...(shuffleTies && { shuffle: ++this.#lists }),
      ...(hidden && { hidden }),
      ...(fault && { fault: { ...fault, random: this.#random } }),
    });
    return { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body };
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
