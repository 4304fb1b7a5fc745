import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { ServerOptions } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { getRequestListener } from '@hono/node-server';
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { secureHeaders } from 'hono/secure-headers';
import { streamSSE } from 'hono/streaming';
import { CellarstreamError } from '../../core/errors.ts';
import type { Readiness } from '../status/readiness.ts';
import { atMostOncePer, pace } from './pace.ts';

export interface HttpServerOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** At `/`. */
  readonly page: Page;
  readonly answers: Answers;
  /** Of an instance of a fleet: each of its accounts has a page and a status of its own. */
  readonly accounts?: AccountAnswers | undefined;
  readonly metricsType: string;
  /** A connection on which nothing has moved for so long, ms, is ended: whoever it is does not read. Default 15,000. */
  readonly idleMs?: number;
  /** Who makes no sense is left waiting for so long, ms, and then cut off. Default 5,000. */
  readonly holdMs?: number;
  /** Longest time that a client may take to send the headers of a request, in ms. Default 5,000. */
  readonly headersTimeoutMs?: number;
  /** Told of what should not happen: a handler that threw. */
  readonly onError: (error: unknown) => void;
}

/** What the server asks of the service, be that in this thread or in another. */
export interface Answers {
  /** Rejects when the service's thread is stuck. */
  readonly alive: () => Awaitable<true>;
  readonly readiness: () => Awaitable<Readiness>;
  /** JSON, without personal fields. */
  readonly status: () => Awaitable<string>;
  readonly metrics: () => Awaitable<string>;
}

/** What the server asks of an instance of a fleet besides. */
export interface AccountAnswers {
  /** At `/accounts/NAME`, of whatever name: it asks for the status of that account itself. */
  readonly page: Page;
  readonly status: (account: string) => Awaitable<AccountStatus>;
}

interface AccountStatus {
  /** Whether this instance runs the account. */
  readonly isHere: boolean;
  /** Its status, or who runs it instead. */
  readonly json: string;
}

type Awaitable<T> = T | Promise<T>;

export interface HttpServer {
  /** Where it listens, such as `http://127.0.0.1:9464`. */
  readonly url: string;
  /** Ends every connection. */
  readonly close: () => Promise<void>;
}

/** How often the page is told what is new, and how old an answer may be, ms. */
const EVERY_MS = 1_000;
/** Pages that are told at once. */
const MAX_STREAMS = 64;
/** Answers a second, to all clients together: what asks faster waits. */
const PER_SECOND = 30;
const MAX_CONNECTIONS = 512;
/** Accounts whose status is kept for {@link EVERY_MS}: more than are asked for in that time. */
const MAX_ACCOUNTS = MAX_STREAMS + PER_SECOND;
/** An account's name is no longer than a file's. */
const MAX_NAME = 255;
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

/** Limits of memory and time, in ms, for slow clients. Times are checked each second. */
const LIMITS: ServerOptions = {
  maxHeaderSize: 8_192,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
};
const IDLE_MS = 15_000;
/** What is no request, and yet worth a word to a person. */
const REFUSALS: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};
const REQUESTS_PER_CONNECTION = 1_000;

/**
 * Tells operators how a service is, and takes nothing from anybody: GET alone, on a few fixed
 * paths. Meant for a network that is trusted: there is no login, and no TLS.
 *
 * Whatever clients do, all together get no more than {@link PER_SECOND} answers a second, worked out once
 * a second at most. Who asks faster waits in line, behind the probes of `/healthz` and `/readyz`; who
 * neither sends nor reads, or does not wait for an answer, loses the connection.
 *
 * @throws CellarstreamError `SETTINGS` when it can't listen there.
 */
export async function openHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { host, port, idleMs = IDLE_MS, holdMs = 5_000, headersTimeoutMs = 5_000 } = options;
  const paced = pace(PER_SECOND, MAX_CONNECTIONS);
  const app = routes(options);
  const server = createServer({ ...LIMITS, headersTimeout: headersTimeoutMs });
  const answer = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    errorHandler: options.onError,
  });
  const busy = new WeakSet<Socket>();
  server.on('request', (request, response) => {
    const { socket } = request;
    // No browser, probe or Prometheus asks again before it was answered: it would only fill the line.
    if (busy.has(socket)) return hold(socket, holdMs);
    busy.add(socket);
    response.once('finish', () => busy.delete(socket));
    paced
      .turn(PROBES.has(request.url ?? '') ? 'probe' : 'other')
      .then((isTheirs) => (isTheirs ? answer(request, response) : void socket.destroy()))
      .catch(options.onError);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const answer = REFUSALS[error.code ?? ''];
    if (answer === undefined) return hold(socket, holdMs);
    socket.end(`HTTP/1.1 ${answer}\r\nconnection: close\r\n\r\n`);
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION;
  server.setTimeout(idleMs);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(unlistening(host, port, cause)));
    server.listen({ host, port }, resolve);
  });
  const address = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      paced.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

type App = Hono<{ Bindings: HttpBindings }>;

function routes(options: HttpServerOptions): App {
  const { host, page, answers, accounts, metricsType, idleMs = IDLE_MS, onError } = options;
  const metrics = atMostOncePer(EVERY_MS, 1, () => answers.metrics());
  const status = statusOf(options);
  const pages = [page, ...(accounts ? [accounts.page] : [])];
  let streams = 0;

  const app: App = new Hono();
  app.use(async (context, next) => {
    const { method } = context.req;
    if (isLoopback(host) && !isLoopback(new URL(context.req.url).hostname)) {
      return context.text('ask for it as 127.0.0.1 or localhost\n', 403); // see isLoopback
    }
    if (method !== 'GET' && method !== 'HEAD') {
      return context.text('only GET is answered\n', 405, {
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
      strictTransportSecurity: false, // plain HTTP, as of itself
    }),
  );
  app.get('/', (context) => context.html(page.html));
  if (accounts) app.get('/accounts/:account', (context) => context.html(accounts.page.html));
  app.get('/healthz', async (context) => {
    const isAlive = await Promise.resolve(answers.alive()).catch(() => false);
    return isAlive ? context.text('alive\n') : context.text('stuck\n', 503);
  });
  app.get('/readyz', async (context) => {
    const { ready, reasons } = await answers.readiness();
    return context.text((ready ? ['ready'] : reasons).join('\n') + '\n', ready ? 200 : 503);
  });
  app.get('/status', async (context) => {
    const { isHere, json } = await status(context.req.query('account'));
    return context.body(json, isHere ? 200 : 404, JSON_TYPE);
  });
  app.get('/status/events', async (context) => {
    const account = context.req.query('account');
    // A HEAD is a GET whose answer is thrown away, and this one has no end.
    if (context.req.method === 'HEAD')
      return context.body(null, 200, { 'content-type': 'text/event-stream' });
    if (account !== undefined) {
      const { isHere, json } = await status(account);
      if (!isHere) return context.body(json, 404, JSON_TYPE);
    }
    if (streams >= MAX_STREAMS) return context.text('too many are told already\n', 503);
    streams += 1;
    return streamSSE(
      context,
      async (stream) => {
        try {
          while (!stream.aborted && !stream.closed) {
            const { isHere, json } = await status(account);
            if (!isHere) return; // who asks again is told why
            const written = stream.writeSSE({ event: 'status', data: json });
            // Not the connection's own time-out: who does not read may send all the same.
            if (!(await within(idleMs, written))) return void context.env.outgoing.destroy();
            await stream.sleep(EVERY_MS);
          }
        } finally {
          streams -= 1;
        }
      },
      (error) => Promise.resolve(onError(error)),
    );
  });
  app.get('/metrics', async (context) =>
    context.body(await metrics(''), 200, { 'content-type': metricsType }),
  );
  app.notFound((context) => context.text('there is nothing here\n', 404));
  app.onError((error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    onError(error);
    return context.text('this went wrong; the log says how\n', 500);
  });
  return app;
}

/** The status of one account, or of all there is: each at most once in {@link EVERY_MS}. */
function statusOf({
  answers,
  accounts,
}: HttpServerOptions): (account: string | undefined) => Promise<AccountStatus> {
  const ofAll = atMostOncePer(EVERY_MS, 1, () => answers.status());
  const ofAccount = accounts && atMostOncePer(EVERY_MS, MAX_ACCOUNTS, accounts.status);
  return async (account) =>
    ofAccount && account !== undefined
      ? ofAccount(account.slice(0, MAX_NAME))
      : { isHere: true, json: await ofAll('') };
}

/**
 * Whether a host is this machine. A server that listens there answers no other name: a page from elsewhere, in
 * a browser of this machine, may have a name of its own lead here (DNS rebinding), and would be of our origin.
 */
function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);
}

/**
 * Reads no more of a connection, and ends it later: who was cut off at once would be back at once, and a new
 * connection costs more than one that waits.
 */
function hold(socket: Duplex, holdMs: number): void {
  if (socket.isPaused()) return;
  socket.pause();
  socket.removeAllListeners('data'); // the parser's: what it has of the same chunk is not looked at
  setTimeout(() => socket.destroy(), holdMs).unref();
}

/** Whether something is done in so many ms. */
async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  try {
    const late = pause(ms, false, { signal: over.signal, ref: false });
    return await Promise.race([work.then(() => true), late]);
  } finally {
    over.abort();
  }
}

function unlistening(host: string, port: number, cause: NodeJS.ErrnoException): CellarstreamError {
  const [name, advice] =
    cause.code === 'EADDRINUSE'
      ? ['HTTP_PORT', `is taken on ${host}: end what listens there, or set another`]
      : cause.code === 'EACCES'
        ? ['HTTP_PORT', 'may not be listened on by this user: set one above 1023']
        : [
            'HTTP_HOST',
            `can't be listened on (${cause.code ?? cause.message}): set an address of this machine`,
          ];
  const value = name === 'HTTP_PORT' ? `${name} ${port}` : `${name} ${host}`;
  return new CellarstreamError('SETTINGS', `${value} ${advice}`, { context: { settings: name } });
}

/** The status page, and what of it a browser may run. */
export interface Page {
  readonly html: string;
  /** As a Content-Security-Policy names them: `'sha256-...'`. */
  readonly scriptHashes: string[];
  readonly styleHashes: string[];
}

/** Of the only account, of a fleet, and of one account of it: each is one file, with its script and its style in it. */
type PageName = 'page' | 'fleet' | 'account';

/** Built beside the compiled code by scripts/build-page.mjs. */
export function loadPage(page: PageName | URL): Page {
  const file = page instanceof URL ? page : new URL(`../${page}.html`, import.meta.url);
  return pageOf(readFileSync(fileURLToPath(file), 'utf8'));
}

export function pageOf(html: string): Page {
  return {
    html,
    scriptHashes: hashesOf(html, /<script\b[^>]*>([\s\S]*?)<\/script>/g),
    styleHashes: hashesOf(html, /<style\b[^>]*>([\s\S]*?)<\/style>/g),
  };
}

function hashesOf(html: string, element: RegExp): string[] {
  return [...html.matchAll(element)].map(
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  );
}
