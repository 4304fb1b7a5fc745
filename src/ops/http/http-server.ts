import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { ServerOptions } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { secureHeaders } from 'hono/secure-headers';
import { streamSSE } from 'hono/streaming';
import { CellarstreamError } from '../../core/errors.ts';
import type { Readiness } from '../status/causes.ts';

export interface HttpServerOptions {
  readonly host: string;
  /** TCP port to listen on; 0: any free port. */
  readonly port: number;
  readonly page: Page;
  /**
   * Page that is served at `/accounts/NAME`. It is the same for all accounts: its script requests the status of account NAME. Undefined
   * outside of a fleet.
   */
  readonly accountPage?: Page;
  readonly endpoints: StatusEndpoints;
  /** Time in ms after which a connection without traffic is closed, for example if the client does not read. Default 15,000. */
  readonly idleMs?: number;
  /** Longest time that a client may take to send the headers of a request, in ms. Default 5,000. */
  readonly headersTimeoutMs?: number;
  /** Called with each unexpected error, such as one thrown by a request handler. */
  readonly onError: (error: unknown) => void;
}

/** Calls that the HTTP server makes to the service. The service may run in another thread than the server. */
export interface StatusEndpoints {
  /** Resolves if the thread of the service responds; rejects when that thread is stuck. */
  readonly alive: () => Awaitable<true>;
  readonly readiness: () => Awaitable<Readiness>;
  /** Returns the service's status as JSON text, without personal data. */
  readonly status: () => Awaitable<string>;
  /** Returns the metrics in the text format of Prometheus. */
  readonly metrics: () => Awaitable<string>;
  /** Returns the status of one account. Undefined outside of a fleet. */
  readonly accountStatus?: (account: string) => Awaitable<AccountStatus>;
}

interface AccountStatus {
  readonly isHere: boolean;
  /**
   * Status of the account as JSON text. If the account does not run on this instance: an error, which names the account's owner if one is
   * known.
   */
  readonly json: string;
}

type Awaitable<T> = T | Promise<T>;

export interface HttpServer {
  /** Base URL, such as `http://127.0.0.1:9464`. */
  readonly url: string;
  /** Stops the server and closes every connection. */
  readonly close: () => Promise<void>;
}

/** Interval of the status events that are sent to an open page, in ms. A computed status or metrics text is cached for the same time. */
const REFRESH_MS = 1_000;
/** Maximum number of open event streams (`/status/events`). Further streams are refused with 503; their pages then poll `/status`. */
const MAX_STREAMS = 64;
/**
 * Maximum number of accounts whose status is cached at a time. If it is too small, the status is computed more often; if too large, memory
 * use grows.
 */
const MAX_ACCOUNTS = 100;
/** Maximum length of an account's name in a request, in characters. A longer name is cut off; no account has one. */
const MAX_NAME = 255;
/** Header with the content type of the metrics. The value is that of prom-client's `Registry.PROMETHEUS_CONTENT_TYPE`. */
const METRICS_TYPE = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' };
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };

/**
 * Limits for requests to the HTTP server: `maxHeaderSize` in bytes, the others in ms. Node checks `requestTimeout` every
 * `connectionsCheckingInterval` ms.
 */
const LIMITS: ServerOptions = {
  maxHeaderSize: 8_192,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
};
const MAX_CONNECTIONS = 512;
const REQUESTS_PER_CONNECTION = 1_000;
const IDLE_MS = 15_000;

/**
 * Opens the read-only HTTP server for operators: GET and HEAD on a few paths, without login or TLS, for trusted networks.
 *
 * @throws CellarstreamError `SETTINGS` when the server can't listen on that address.
 */
export async function openHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { host, port, idleMs = IDLE_MS, headersTimeoutMs = 5_000, onError } = options;
  const answer = getRequestListener(routes(options).fetch, {
    overrideGlobalObjects: false,
    errorHandler: onError,
  });
  const server = createServer(
    { ...LIMITS, headersTimeout: headersTimeoutMs },
    (request, response) => void answer(request, response),
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION;
  server.setTimeout(idleMs);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(listenError(host, port, cause)));
    server.listen({ host, port }, resolve);
  });
  const address = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

type App = Hono<{ Bindings: HttpBindings }>;

function routes(options: HttpServerOptions): App {
  const { host, page, accountPage, endpoints, idleMs = IDLE_MS, onError } = options;
  const { accountStatus } = endpoints;
  const metrics = atMostOncePer(REFRESH_MS, 1, endpoints.metrics);
  const wholeStatus = atMostOncePer(REFRESH_MS, 1, endpoints.status);
  const statusOf = accountStatus && atMostOncePer(REFRESH_MS, MAX_ACCOUNTS, accountStatus);
  /**
   * Returns the status of one account or, if no account is given, that of the whole service or fleet. Outside of a fleet `account` is
   * ignored.
   */
  const status = async (account: string | undefined): Promise<AccountStatus> =>
    statusOf && account !== undefined
      ? statusOf(account.slice(0, MAX_NAME))
      : { isHere: true, json: await wholeStatus('') };
  const pages = [page, ...(accountPage ? [accountPage] : [])];
  let streams = 0;

  const app: App = new Hono();
  app.use(async (context, next) => {
    const { method } = context.req;
    if (isLoopback(host) && !isLoopback(new URL(context.req.url).hostname)) {
      return context.text('use the host name 127.0.0.1 or localhost\n', 403); // see isLoopback
    }
    if (method !== 'GET' && method !== 'HEAD') {
      return context.text('only GET and HEAD are supported\n', 405, {
        allow: 'GET, HEAD',
        connection: 'close',
      });
    }
    await next();
    context.res.headers.set('cache-control', 'no-store');
    return undefined;
  });
  app.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        scriptSrc: pages.flatMap(({ scriptHashes }) => scriptHashes),
        styleSrc: pages.flatMap(({ styleHashes }) => styleHashes),
        connectSrc: ["'self'"],
        imgSrc: ["'self'", 'data:'],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
      referrerPolicy: 'no-referrer',
      xFrameOptions: 'DENY',
      strictTransportSecurity: false, // the server has no TLS
    }),
  );
  app.get('/', (context) => context.html(page.html));
  if (accountPage) app.get('/accounts/:account', (context) => context.html(accountPage.html));
  app.get('/healthz', async (context) => {
    const isAlive = await Promise.resolve(endpoints.alive()).catch(() => false);
    return isAlive ? context.text('alive\n') : context.text('stuck\n', 503);
  });
  app.get('/readyz', async (context) => {
    const { ready, reasons } = await endpoints.readiness();
    return context.text((ready ? ['ready'] : reasons).join('\n') + '\n', ready ? 200 : 503);
  });
  app.get('/status', async (context) => {
    const { isHere, json } = await status(context.req.query('account'));
    return context.body(json, isHere ? 200 : 404, JSON_TYPE);
  });
  app.get('/status/events', async (context) => {
    const account = context.req.query('account');
    // Hono runs the GET handler for a HEAD request; here that would send an endless stream.
    if (context.req.method === 'HEAD')
      return context.body(null, 200, { 'content-type': 'text/event-stream' });
    if (account !== undefined) {
      const { isHere, json } = await status(account);
      if (!isHere) return context.body(json, 404, JSON_TYPE);
    }
    if (streams >= MAX_STREAMS)
      return context.text('too many open event streams; use /status\n', 503);
    streams += 1;
    return streamSSE(
      context,
      async (stream) => {
        try {
          while (!stream.aborted && !stream.closed) {
            const { isHere, json } = await status(account);
            if (!isHere) return; // when the page reconnects, the 404 above says why
            const written = stream.writeSSE({ event: 'status', data: json });
            // The socket's idle time-out is not enough: a client that does not read may still send.
            if (!(await isDoneWithin(idleMs, written))) return void context.env.outgoing.destroy();
            await stream.sleep(REFRESH_MS);
          }
        } finally {
          streams -= 1;
        }
      },
      (error) => Promise.resolve(onError(error)),
    );
  });
  app.get('/metrics', async (context) => context.body(await metrics(''), 200, METRICS_TYPE));
  app.notFound((context) => context.text('not found\n', 404));
  app.onError((error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    onError(error);
    return context.text('internal error: see the log\n', 500);
  });
  return app;
}

/** Wraps `work` so that its result for each key is cached for `everyMs` ms. At most `most` results are cached at a time. */
export function atMostOncePer<T>(
  everyMs: number,
  most: number,
  work: (key: string) => T,
): (key: string) => T {
  const cached = new Map<string, T>();
  return (key) => {
    if (cached.has(key)) return cached.get(key)!;
    const result = work(key);
    if (cached.size < most) {
      cached.set(key, result);
      setTimeout(() => cached.delete(key), everyMs).unref();
    }
    return result;
  };
}

/**
 * Whether a host name means this machine itself (the loopback interface). A server on loopback refuses requests for other host names, so
 * that a foreign website can't read the status by DNS rebinding.
 */
function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);
}

async function isDoneWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  try {
    const late = pause(ms, false, { signal: over.signal, ref: false });
    return await Promise.race([work.then(() => true), late]);
  } finally {
    over.abort();
  }
}

function listenError(host: string, port: number, cause: NodeJS.ErrnoException): CellarstreamError {
  const { code = cause.message } = cause;
  const portAdvice: Readonly<Record<string, string>> = {
    EADDRINUSE: `is in use on ${host}: stop the process that listens there, or set another port`,
    EACCES: 'requires a privileged user: set a port above 1023',
  };
  const advice = portAdvice[code];
  const [settings, text] = advice
    ? ['HTTP_PORT', `HTTP_PORT ${port} ${advice}`]
    : ['HTTP_HOST', `HTTP_HOST ${host} can't be bound (${code}): set an address of this machine`];
  return new CellarstreamError('SETTINGS', text, { context: { settings } });
}

export interface Page {
  readonly html: string;
  /** Hashes of the inlined scripts, in the form of a Content-Security-Policy: `'sha256-...'`. */
  readonly scriptHashes: string[];
  readonly styleHashes: string[];
}

/** Reads a built status page: that of a service with one account (`page`), of a fleet, or of one account in a fleet. */
export function loadPage(name: 'page' | 'fleet' | 'account'): Page {
  return pageOf(readFileSync(new URL(`../${name}.html`, import.meta.url), 'utf8'));
}

export function pageOf(html: string): Page {
  const hashesOf = (element: RegExp) =>
    [...html.matchAll(element)].map(
      ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
    );
  return {
    html,
    scriptHashes: hashesOf(/<script\b[^>]*>([\s\S]*?)<\/script>/g),
    styleHashes: hashesOf(/<style\b[^>]*>([\s\S]*?)<\/style>/g),
  };
}
