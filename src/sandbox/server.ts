// The API on a socket: routes, whose a request is, quotas, faults, latency, a cache in front.

import { setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { RESOURCES } from './resources.ts';
import type { Endpoint, Resource } from './resources.ts';
import type { Account, Accounts } from './account.ts';
import { apiKeyIn, complaint, json, page, tokenIn } from './api.ts';
import type { Answer } from './api.ts';
import { pageFault } from './faults.ts';
import type { Asked, FaultKind, PageFault } from './faults.ts';
import type { Settings } from './options.ts';
import type { Random } from './random.ts';

/** Where staging lives: its address already ends in the version segment. */
export const STAGING = '/staging/v1';

const LOGIN = '/auth/public/login';

/** Each path the API answers, and what it is. One description repeats the version at staging's login. */
const ROUTES: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  [`/v1${LOGIN}`, 'login'],
  [`${STAGING}${LOGIN}`, 'login'],
  [`${STAGING}/v1${LOGIN}`, 'login'],
  ...RESOURCES.flatMap((resource): [string, Endpoint][] => [
    [`/v1/${resource}`, resource],
    [`${STAGING}/${resource}`, resource],
  ]),
]);

/** A login is small; more than this many bytes are not read. */
const BODY_BYTES = 65_536;

const compress = promisify(gzip);

/** What a {@link Server} serves with. */
interface ServerParts {
  readonly settings: Settings;
  readonly accounts: Accounts;
  /** For latencies within a range. */
  readonly random: Random;
  /** When requests arrive, in epoch ms. */
  readonly arrivalClock: () => number;
  /** What the server believes the time to be, in epoch ms. */
  readonly serverClock: () => number;
}

/** A request on its way to the account that answers it. */
interface Call {
  readonly account: Account;
  /** The page that is asked for; undefined for a login. */
  readonly asked?: Asked;
  /** What the account answers when neither quota nor fault is in the way. */
  readonly answer: (fault: PageFault | undefined) => Answer | Promise<Answer>;
}

/** The API on a socket: routes, whose a request is, quotas, faults, latency. */
export class Server {
  latencyMs: number | readonly [number, number];
  readonly #parts: ServerParts;
  #http: HttpServer | undefined;
  #stopped = new AbortController();
  readonly #caches = new WeakMap<Account, PageCache>();

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.latencyMs = parts.settings.latencyMs;
  }

  get listening(): boolean {
    return this.#http !== undefined;
  }

  /** @returns the port. */
  async listen(host: string, port: number): Promise<number> {
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      this.#serve(request, response).catch((error: unknown) => {
        // The client or `stop` closed the connection meanwhile; anything else is a bug.
        if (response.destroyed || request.socket.destroyed) return;
        response.destroy();
        process.emitWarning(error instanceof Error ? error : String(error));
      });
    };
    const { tls } = this.#parts.settings;
    const http = tls ? createTlsServer(tls, answer) : createServer(answer);
    http.keepAliveTimeout = 65_000; // longer than clients keep theirs: they never meet a closing one
    await new Promise<void>((resolve, reject) => {
      http.once('error', reject);
      http.listen(port, host, resolve);
    });
    this.#http = http;
    this.#stopped = new AbortController();
    setMaxListeners(0, this.#stopped.signal); // one for each answer that is held back
    return (http.address() as AddressInfo).port;
  }

  /** Closes the port and every connection. */
  async stop(): Promise<void> {
    const http = this.#http;
    if (!http) return;
    this.#http = undefined;
    this.#stopped.abort();
    const closed = new Promise<void>((resolve) => http.close(() => resolve()));
    http.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    const endpoint = ROUTES.get(path);
    const { needsUserAgent } = this.#parts.settings.readings;
    if (needsUserAgent && !request.headers['user-agent']) {
      return this.#send(request, response, page(403, 'Request blocked'));
    }
    if (endpoint === undefined) return this.#send(request, response, complaint(404, 'Not found'));
    const method = endpoint === 'login' ? 'POST' : 'GET';
    if (request.method !== method) {
      const { headers, ...answer } = complaint(405, `Use ${method}`);
      return this.#send(request, response, { ...answer, headers: { ...headers, allow: method } });
    }
    const call =
      endpoint === 'login' ? await this.#login(request) : this.#list(endpoint, query, request);
    const { account } = call;
    const at = this.#parts.arrivalClock();
    const { arrival, waitMs } = account.arrivals.take(endpoint, query, at);
    const fault = waitMs > 0 ? undefined : account.faults.strike(endpoint, call.asked);
    if (fault?.kind === 'drop') return void request.socket.destroy();
    const pause = this.#latency();
    await this.#wait(pause / 2);
    const answer =
      waitMs > 0
        ? account.api.tooMany(waitMs)
        : (replacement(fault) ??
          (fault?.kind === 'cached'
            ? await this.#cached(`${endpoint}?${query}`, call, fault)
            : await call.answer(pageFault(fault))));
    await this.#wait(pause / 2 + (fault?.kind === 'slow' ? fault.ms : 0));
    arrival.status = answer.status;
    await this.#send(request, response, answer, fault);
  }

  /** The page of an earlier request, or the answer to this one, which is kept. */
  async #cached(
    name: string,
    { account, answer }: Call,
    { ms, sendsAge = true }: Extract<FaultKind, { readonly kind: 'cached' }>,
  ): Promise<Answer> {
    const cache = this.#caches.get(account) ?? new PageCache();
    this.#caches.set(account, cache);
    const now = this.#parts.serverClock();
    const kept = cache.find(name, now, ms, sendsAge);
    if (kept) return kept;
    const made = await answer(undefined);
    if (made.status === 200) cache.keep(name, made, now);
    return made;
  }

  /** The key says whose a login is, so it counts when its body is there. */
  async #login(request: IncomingMessage): Promise<Call> {
    const body = await readBody(request);
    const apiKey = body === undefined ? undefined : apiKeyIn(body);
    const account = this.#parts.accounts.ofKey(apiKey);
    return {
      account,
      answer: () =>
        body === undefined ? complaint(413, 'Body too large') : account.api.login(apiKey),
    };
  }

  #list(resource: Resource, query: string, request: IncomingMessage): Call {
    const token = tokenIn(request.headers.authorization);
    const account = this.#parts.accounts.ofToken(token);
    const params = new URLSearchParams(query);
    return {
      account,
      asked: {
        offset: Number(params.get('offset') ?? 0),
        pageSize: Number(params.get('pageSize') ?? 1_000),
        dated: params.has('modifiedFromDate') || params.has('modifiedToDate'),
        endsInFuture: Date.parse(params.get('modifiedToDate') ?? '') > this.#parts.serverClock(),
        holds: (key) => account.api.holds(resource, params, key),
      },
      answer: (fault) => account.api.list(resource, params, token, fault),
    };
  }

  async #send(
    request: IncomingMessage,
    response: ServerResponse,
    answer: Answer,
    fault?: FaultKind,
  ): Promise<void> {
    if (response.destroyed) return;
    const { settings, serverClock } = this.#parts;
    const zip =
      settings.gzip && acceptsGzip(request) && (answer.status === 200 || answer.status === 203);
    const body = zip ? await compress(answer.body, { level: constants.Z_BEST_SPEED }) : answer.body;
    response.sendDate = false;
    response.writeHead(answer.status, {
      ...(settings.readings.dateHeader && { date: new Date(serverClock()).toUTCString() }),
      ...answer.headers,
      ...(zip && { 'content-encoding': 'gzip' }),
      'content-length': body.length,
    });
    if (fault?.kind !== 'truncate' && fault?.kind !== 'stall') return void response.end(body);
    const half = body.subarray(0, Math.floor(body.length / 2));
    response.write(half, () => {
      if (fault.kind === 'truncate') request.socket.destroySoon();
    });
  }

  #latency(): number {
    if (typeof this.latencyMs === 'number') return this.latencyMs;
    const [low, high] = this.latencyMs;
    return low + this.#parts.random.next() * (high - low);
  }

  async #wait(ms: number): Promise<void> {
    if (ms > 0) await delay(ms, undefined, { signal: this.#stopped.signal });
  }
}

/** What a fault answers in place of the API. */
function replacement(fault: FaultKind | undefined): Answer | undefined {
  if (fault?.kind === 'firewall') return page(403, 'Request blocked');
  if (fault?.kind === 'garbage') return page(200, 'Welcome to the guest network');
  if (fault?.kind !== 'status') return undefined;
  const { status, body = { statusCode: status, message: 'Fault' }, headers = {} } = fault;
  const answer =
    typeof body === 'string'
      ? { status, headers: {}, body: Buffer.from(body) }
      : json(status, body);
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** The body, or undefined when it is too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > BODY_BYTES) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function acceptsGzip(request: IncomingMessage): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(String(request.headers['accept-encoding']));
}

/** Pages that are kept at most; the oldest goes first. */
const MAX_PAGES = 1_000;

interface KeptPage {
  readonly answer: Answer;
  /** Epoch ms by the server's clock. */
  readonly at: number;
}

/** A cache in front of one account's lists, for the fault `cached`. */
class PageCache {
  readonly #pages = new Map<string, KeptPage>();

  /** The page that was kept under this name less than `ms` ago, with the headers of a cache. @param now epoch ms. */
  find(name: string, now: number, ms: number, sendsAge: boolean): Answer | undefined {
    const page = this.#pages.get(name);
    if (!page || now - page.at >= ms) return undefined;
    const { answer, at } = page;
    const age = sendsAge && { age: String(Math.floor((now - at) / 1_000)) };
    return { ...answer, headers: { ...answer.headers, ...age, date: new Date(at).toUTCString() } };
  }

  keep(name: string, answer: Answer, now: number): void {
    this.#pages.delete(name);
    this.#pages.set(name, { answer, at: now });
    if (this.#pages.size <= MAX_PAGES) return;
    const [oldest] = this.#pages.keys();
    this.#pages.delete(oldest!);
  }
}
