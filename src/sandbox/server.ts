// HTTP server of the sandbox: routing, quotas, faults, latency, and a simulated cache.

import { setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { RESOURCES, type Endpoint, type Resource } from './resources.ts';
import type { ServedAccount, Accounts } from './account.ts';
import { apiKeyIn, errorResponse, jsonResponse, htmlResponse, bearerTokenIn } from './api.ts';
import type { ApiResponse } from './api.ts';
import { pageFault, type FaultTarget, type FaultKind, type PageFault } from './faults.ts';
import type { SandboxSettings } from './options.ts';
import type { Random } from './random.ts';

/** Path prefix of the staging API. In staging, `/v1` belongs to the base URL; in production, it belongs to the path of each endpoint. */
export const STAGING = '/staging/v1';

const LOGIN = '/auth/public/login';

/**
 * Endpoints by path. One version of the API's description repeats `/v1` in the path of the staging login, so the server accepts that path
 * too.
 */
const ROUTES: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  [`/v1${LOGIN}`, 'login'],
  [`${STAGING}${LOGIN}`, 'login'],
  [`${STAGING}/v1${LOGIN}`, 'login'],
  ...RESOURCES.flatMap((resource): [string, Endpoint][] => [
    [`/v1/${resource}`, resource],
    [`${STAGING}/${resource}`, resource],
  ]),
]);

/** Maximum size of a login's body in bytes. A larger body is refused with 413. */
const BODY_BYTES = 65_536;

const compress = promisify(gzip);

interface ServerParts {
  readonly settings: SandboxSettings;
  readonly accounts: Accounts;
  /** Random numbers for latencies that are drawn from a range. */
  readonly random: Random;
  /** Returns the time in epoch ms, without the skew of `serverClock`. Requests count against the quotas by this clock. */
  readonly arrivalClock: () => number;
  /** The server's clock, including its skew, in epoch ms. */
  readonly serverClock: () => number;
}

/** A request whose endpoint is known, with the account that responds to it. */
interface AccountCall {
  readonly account: ServedAccount;
  /** Properties of the list request; undefined for a login. */
  readonly target?: FaultTarget;
  /**
   * Returns the response of the account's API, altered by `fault` if there is one. Not called for a request that is over the quota, or that
   * a fault or the cache responds to.
   */
  readonly answer: (fault: PageFault | undefined) => ApiResponse | Promise<ApiResponse>;
}

export class Server {
  latencyMs: number | readonly [number, number];
  readonly #parts: ServerParts;
  #http: HttpServer | undefined;
  #stopped = new AbortController();

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.latencyMs = parts.settings.latencyMs;
  }

  get listening(): boolean {
    return this.#http !== undefined;
  }

  /** Starts listening. @returns the port that the server listens on. */
  async listen(host: string, port: number): Promise<number> {
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      this.#serve(request, response).catch((error: unknown) => {
        // The connection was closed by the client or by `stop`; any other error is a bug.
        if (response.destroyed || request.socket.destroyed) return;
        response.destroy();
        process.emitWarning(error instanceof Error ? error : String(error));
      });
    };
    const { tls } = this.#parts.settings;
    const http = tls ? createTlsServer(tls, answer) : createServer(answer);
    http.keepAliveTimeout = 65_000; // longer than clients keep idle connections, so clients do not reuse one that is being closed
    await new Promise<void>((resolve, reject) => {
      http.once('error', reject);
      http.listen(port, host, resolve);
    });
    this.#http = http;
    this.#stopped = new AbortController();
    setMaxListeners(0, this.#stopped.signal); // one listener for each delayed response
    return (http.address() as AddressInfo).port;
  }

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
      return this.#send(request, response, htmlResponse(403, 'Request blocked'));
    }
    if (endpoint === undefined)
      return this.#send(request, response, errorResponse(404, 'Not found'));
    const method = endpoint === 'login' ? 'POST' : 'GET';
    if (request.method !== method) {
      const { headers, ...answer } = errorResponse(405, `Use ${method}`);
      return this.#send(request, response, { ...answer, headers: { ...headers, allow: method } });
    }
    const call =
      endpoint === 'login' ? await this.#login(request) : this.#list(endpoint, query, request);
    const { account } = call;
    const at = this.#parts.arrivalClock();
    const { arrival, waitMs } = account.arrivals.take(endpoint, query, at);
    const fault = waitMs > 0 ? undefined : account.faults.strike(endpoint, call.target);
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

  /**
   * Returns the cached response to an identical request that arrived less than `ms` ago. If there is none, returns the API's response, and
   * caches it if it is successful.
   */
  async #cached(
    name: string,
    { account: { cachedPages }, answer }: AccountCall,
    { ms, sendsAge = true }: Extract<FaultKind, { readonly kind: 'cached' }>,
  ): Promise<ApiResponse> {
    const now = this.#parts.serverClock();
    const cached = cachedPages.get(name);
    if (!cached || now - cached.at >= ms) {
      const made = await answer(undefined);
      if (isPageStatus(made.status)) cachedPages.set(name, { ...made, at: now });
      return made;
    }
    const { at, ...page } = cached;
    const age = sendsAge && { age: String(Math.floor((now - at) / 1_000)) };
    return { ...page, headers: { ...page.headers, ...age, date: new Date(at).toUTCString() } };
  }

  /**
   * Reads the body of a login and finds the account by the API key in the body. The login counts in the quota only after its body has
   * arrived.
   */
  async #login(request: IncomingMessage): Promise<AccountCall> {
    const body = await readBody(request);
    const apiKey = body === undefined ? undefined : apiKeyIn(body);
    const account = this.#parts.accounts.ofKey(apiKey);
    return {
      account,
      answer: () =>
        body === undefined ? errorResponse(413, 'Body too large') : account.api.login(apiKey),
    };
  }

  #list(resource: Resource, query: string, request: IncomingMessage): AccountCall {
    const token = bearerTokenIn(request.headers.authorization);
    const account = this.#parts.accounts.ofToken(token);
    const params = new URLSearchParams(query);
    return {
      account,
      target: {
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
    answer: ApiResponse,
    fault?: FaultKind,
  ): Promise<void> {
    if (response.destroyed) return;
    const { settings, serverClock } = this.#parts;
    const zip = settings.gzip && acceptsGzip(request) && isPageStatus(answer.status);
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

/** Returns the response that a fault sends instead of the API's response; undefined if the fault does not replace the response. */
function replacement(fault: FaultKind | undefined): ApiResponse | undefined {
  if (fault?.kind === 'firewall') return htmlResponse(403, 'Request blocked');
  if (fault?.kind === 'garbage') return htmlResponse(200, 'Welcome to the guest network');
  if (fault?.kind !== 'status') return undefined;
  const { status, body = { statusCode: status, message: 'Fault' }, headers = {} } = fault;
  const answer =
    typeof body === 'string'
      ? { status, headers: {}, body: Buffer.from(body) }
      : jsonResponse(status, body);
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** Whether a response has one of the statuses with which the sandbox sends pages (`readings.success`). */
function isPageStatus(status: number): boolean {
  return status === 200 || status === 203;
}

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
