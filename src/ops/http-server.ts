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
import { CellarstreamError } from '../errors.ts';
import { atMostOncePer } from './at-most-once-per.ts';
import { pace } from './pace.ts';
import type { Page } from './page-file.ts';
import type { Readiness } from './readiness.ts';

export interface HttpServerOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly page: Page;
  readonly readiness: () => Readiness;
  /** What can be told as JSON; without personal fields. */
  readonly status: () => object;
  readonly metrics: { readonly text: () => Promise<string>; readonly contentType: string };
  /**
   * A connection on which nothing has moved for so long, ms, is ended: whoever it is does not read.
   * Default 15,000.
   */
  readonly idleMs?: number;
  /** Told of what should not happen: a handler that threw. */
  readonly onError: (error: unknown) => void;
}

export interface HttpServer {
  /** Where it listens, such as `http://127.0.0.1:9464`. */
  readonly url: string;
  /** Ends every connection. */
  readonly close: () => Promise<void>;
}

/** How often the page is told what is new, and how old an answer may be, ms. */
const EVERY_MS = 1_000;
/** Pages that are told at once. */
const MOST_STREAMS = 64;
/** Answers a second, to all clients together: what asks faster waits. */
const PER_SECOND = 100;
const MOST_CONNECTIONS = 512;

/** Who is slow has this long, and no more memory than that. Checked each second. */
const LIMITS: ServerOptions = {
  maxHeaderSize: 8_192,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
};
const IDLE_MS = 15_000;
const REQUESTS_PER_CONNECTION = 1_000;

/**
 * Tells operators how a service is, and takes nothing from anybody: GET alone, on a few fixed
 * paths. Meant for a network that is trusted: there is no login, and no TLS.
 *
 * Whatever clients do, they get no more than {@link PER_SECOND} answers a second together, each made
 * once a second at most, and lose their connection when they neither send nor read.
 *
 * @throws CellarstreamError `SETTINGS` when it can't listen there.
 */
export async function openHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { host, port, idleMs = IDLE_MS } = options;
  const paced = pace(PER_SECOND, MOST_CONNECTIONS);
  const app = routes(options, paced.turn);
  const server = createServer(LIMITS);
  const answer = getRequestListener(app.fetch);
  server.on('request', (request, response) => void answer(request, response));
  server.maxConnections = MOST_CONNECTIONS;
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

function routes(options: HttpServerOptions, turn: () => Promise<boolean>): App {
  const { page, readiness, status, metrics, idleMs = IDLE_MS, onError } = options;
  const statusText = atMostOncePer(EVERY_MS, () => JSON.stringify(status()));
  const metricsText = atMostOncePer(EVERY_MS, () => metrics.text());
  let streams = 0;

  const app: App = new Hono();
  app.use(async (context, next) => {
    const { method } = context.req;
    if (method !== 'GET' && method !== 'HEAD') {
      return context.text('only GET is answered\n', 405, {
        allow: 'GET, HEAD',
        connection: 'close',
      });
    }
    if (!(await turn()))
      return context.text('too many wait already\n', 503, { connection: 'close' });
    await next();
    context.res.headers.set('cache-control', 'no-store');
    return undefined;
  });
  app.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        scriptSrc: page.scriptHashes,
        styleSrc: page.styleHashes,
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
  app.get('/healthz', (context) => context.text('alive\n'));
  app.get('/readyz', (context) => {
    const { ready, reasons } = readiness();
    return context.text((ready ? ['ready'] : reasons).join('\n') + '\n', ready ? 200 : 503);
  });
  app.get('/status', (context) =>
    context.body(statusText(), 200, { 'content-type': 'application/json; charset=utf-8' }),
  );
  app.get('/status/events', (context) => {
    if (streams >= MOST_STREAMS) return context.text('too many are told already\n', 503);
    streams += 1;
    return streamSSE(
      context,
      async (stream) => {
        try {
          while (!stream.aborted && !stream.closed) {
            const written = stream.writeSSE({ event: 'status', data: statusText() });
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
    context.body(await metricsText(), 200, { 'content-type': metrics.contentType }),
  );
  app.notFound((context) => context.text('there is nothing here\n', 404));
  app.onError((error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    onError(error);
    return context.text('this went wrong; the log says how\n', 500);
  });
  return app;
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
        : ['HTTP_HOST', `can't be listened on (${cause.code ?? cause.message}): set an address of this machine`]; // prettier-ignore
  const value = name === 'HTTP_PORT' ? `${name} ${port}` : `${name} ${host}`;
  return new CellarstreamError('SETTINGS', `${value} ${advice}`, { context: { settings: name } });
}
