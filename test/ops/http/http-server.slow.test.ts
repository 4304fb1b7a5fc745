import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { Registry } from 'prom-client';
import { from } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openHttpServer, pageOf } from '../../../src/ops/http/http-server.ts';
import type {
  StatusEndpoints,
  HttpServer,
  HttpServerOptions,
} from '../../../src/ops/http/http-server.ts';
import { failureOf } from '../../support/failure.ts';

const PAGE = pageOf(
  '<!doctype html><style>a{}</style><title>t</title><script type="module">b()</script>',
);

let options: HttpServerOptions;
let server: HttpServer;
let errors: unknown[];
let count: number;
const sockets = new Set<Socket>();

beforeEach(async () => {
  errors = [];
  count = 0;
  options = {
    host: '127.0.0.1',
    port: 0,
    page: PAGE,
    endpoints: {
      alive: () => true,
      readiness: () => ({ ready: true, reasons: [], causes: [] }),
      status: () => JSON.stringify({ count: ++count }),
      metrics: () => Promise.resolve('a_total 1\n'),
    },
    onError: (error) => errors.push(error),
  };
  server = await openHttpServer(options);
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await server.close();
});

const get = (path: string, init?: RequestInit) => fetch(server.url + path, init);
const reopen = async (change: Partial<HttpServerOptions>) => {
  await server.close();
  server = await openHttpServer({ ...options, ...change });
};
const reanswer = (change: Partial<StatusEndpoints>) =>
  reopen({ endpoints: { ...options.endpoints, ...change } });
/** A connection of its own, on which `text` is sent. */
const dial = async (text: string): Promise<Socket> => {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  sockets.add(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text);
  return socket;
};

describe('the paths', () => {
  it('tells that the process is alive, and whether it is ready', async () => {
    expect(await (await get('/healthz')).text()).toBe('alive\n');
    expect([(await get('/readyz')).status, await (await get('/readyz')).text()]).toEqual([
      200,
      'ready\n',
    ]);
  });

  it('is not alive when the service does not answer', async () => {
    await reanswer({ alive: () => Promise.reject(new Error('stuck')) });
    const answer = await get('/healthz');
    expect([answer.status, await answer.text()]).toEqual([503, 'stuck\n']);
  });

  it('is not ready with the reasons in words, a line each', async () => {
    const reasons = ['orders: waiting for Kafka since ...', 'products: not caught up yet'];
    const causes = ['kafka', 'starting'] as const;
    await reanswer({ readiness: () => ({ ready: false, reasons, causes }) });
    const answer = await get('/readyz');
    expect([answer.status, await answer.text()]).toEqual([503, reasons.join('\n') + '\n']);
    expect((await get('/healthz')).status).toBe(200);
  });

  it('gives metrics and status in their types, and nothing to be kept', async () => {
    const metrics = await get('/metrics');
    expect(metrics.headers.get('content-type')).toBe(Registry.PROMETHEUS_CONTENT_TYPE);
    expect(await metrics.text()).toBe('a_total 1\n');
    const status = await get('/status');
    expect(status.headers.get('content-type')).toContain('application/json');
    expect(status.headers.get('cache-control')).toBe('no-store');
    expect(await status.json()).toEqual({ count: 1 });
  });

  it('gives the page, in which nothing may run but what is in it', async () => {
    const answer = await get('/');
    expect(await answer.text()).toBe(PAGE.html);
    const policy = answer.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain(`script-src ${PAGE.scriptHashes.join(' ')};`);
    expect(policy).toContain(`style-src ${PAGE.styleHashes.join(' ')};`);
    expect(policy).not.toContain('unsafe');
    expect([PAGE.scriptHashes.length, PAGE.styleHashes.length]).toEqual([1, 1]);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('has nothing else, whatever the path looks like', async () => {
    for (const path of ['/x', '/status/', '/..%2f..%2fetc/passwd', '/%00', '/%', '//etc/passwd']) {
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    }
    const raw = await dial(
      'GET /../../etc/passwd HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n',
    );
    const [answer] = (await once(raw, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 404 /);
  });

  it('answers GET and HEAD alone', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await get('/status', { method });
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([
        method,
        405,
        'GET, HEAD',
      ]);
    }
    expect((await get('/status', { method: 'HEAD' })).status).toBe(200);
  });

  it('says nothing of what went wrong in it, but tells the log', async () => {
    const failure = new Error('with a secret');
    await reanswer({ metrics: () => Promise.reject(failure) });
    const answer = await get('/metrics');
    expect([answer.status, await answer.text()]).toEqual([500, 'internal error: see the log\n']);
    expect(errors).toEqual([failure]);
  });
});

describe('an instance of a fleet', () => {
  const OWN = pageOf('<!doctype html><style>b{}</style><script type="module">own()</script>');
  let here: Set<string>;
  let asked: string[];
  beforeEach(async () => {
    here = new Set(['east', 'west']);
    asked = [];
    const accountStatus = (account: string) => {
      asked.push(account);
      const isHere = here.has(account);
      return { isHere, json: JSON.stringify(isHere ? { account } : { error: 'ask cellar-1' }) };
    };
    await reopen({ accountPage: OWN, endpoints: { ...options.endpoints, accountStatus } });
  });

  it('tells the status of all, or of one account; and who runs it where it does not', async () => {
    expect(await (await get('/status')).json()).toEqual({ count: 1 });
    expect(await (await get('/status?account=east')).json()).toEqual({ account: 'east' });
    const elsewhere = await get('/status?account=north');
    expect(elsewhere.status).toBe(404);
    expect(elsewhere.headers.get('content-type')).toContain('application/json');
    expect(await elsewhere.json()).toEqual({ error: 'ask cellar-1' });
    const odd = await get(`/status?account=${'x'.repeat(3_000)}`);
    expect([odd.status, asked.at(-1)!.length]).toEqual([404, 255]);
  });

  it('asks the service for an account once a second at most, each by itself', async () => {
    for (let nth = 0; nth < 5; nth += 1) {
      await Promise.all([get('/status?account=east'), get('/status?account=west')]);
    }
    expect(asked.toSorted()).toEqual(['east', 'west']);
  });

  it('has a page for each account, in which its own script may run', async () => {
    const answer = await get('/accounts/east');
    expect(await answer.text()).toBe(OWN.html);
    const policy = answer.headers.get('content-security-policy')!;
    for (const hash of [...PAGE.scriptHashes, ...OWN.scriptHashes, ...OWN.styleHashes]) {
      expect(policy).toContain(hash);
    }
    expect(await (await get('/')).text()).toBe(PAGE.html);
    for (const path of ['/accounts', '/accounts/', '/accounts/east/status']) {
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    }
  });

  it('tells events of one account until it runs here no longer, and then why', async () => {
    const answer = await get('/status/events?account=east');
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value!).toContain('data: {"account":"east"}');
    here.delete('east');
    let last = await reader.read();
    while (!last.done) last = await reader.read();
    const again = await get('/status/events?account=east');
    expect([again.status, await again.json()]).toEqual([404, { error: 'ask cellar-1' }]);
  });
});

it('has one status and one page where there is no fleet, whatever is asked for', async () => {
  expect(await (await get('/status?account=east')).json()).toEqual({ count: 1 });
  expect((await get('/accounts/east')).status).toBe(404);
});

describe('events', () => {
  it('tells the status at once, and again each second', async () => {
    const answer = await get('/status/events');
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    const first = (await reader.read()).value!;
    expect(first).toContain('event: status\ndata: {"count":1}\n\n');
    // An answer is kept for a second, too: the next one may be it.
    let next = (await reader.read()).value!;
    if (next.includes('data: {"count":1}')) next = (await reader.read()).value!;
    expect(next).toContain('data: {"count":2}');
    await reader.cancel();
  });

  it('ends with the server', async () => {
    const answer = await get('/status/events');
    await server.close();
    await expect(answer.text()).rejects.toThrow();
    server = await openHttpServer(options);
  });
});

describe('its limits', () => {
  it('answers one request as another within a second: nothing is worked out twice', async () => {
    await Promise.all(Array.from({ length: 25 }, () => get('/status').then((a) => a.text())));
    expect(count).toBeLessThanOrEqual(2);
  });

  it('answers probes while others flood it', async () => {
    const flood = Array.from({ length: 100 }, () => get('/status').then((answer) => answer.text()));
    for (let n = 0; n < 5; n++) {
      const started = performance.now();
      expect((await get('/healthz')).status).toBe(200);
      expect(performance.now() - started).toBeLessThan(5_000); // timeoutSeconds of the pods' probes
    }
    await Promise.all(flood);
  });

  it('keeps no place of the page for a HEAD', async () => {
    for (let n = 0; n < 70; n++) await get('/status/events', { method: 'HEAD' });
    const answer = await get('/status/events');
    expect(answer.status).toBe(200);
    await answer.body!.cancel();
  });

  it('refuses who was led to this machine by another name', async () => {
    const status = (host: string) =>
      new Promise((resolve, reject) => {
        const sent = request(`${server.url}/status`, { headers: { host } }, (answer) =>
          resolve(answer.resume().statusCode),
        );
        sent.once('error', reject).end();
      });
    expect(await status('rebound.example')).toBe(403);
    expect(await status('localhost:9464')).toBe(200);
    expect(await status('[::1]:9464')).toBe(200);
    await reopen({ host: '0.0.0.0' });
    server = { ...server, url: server.url.replace('0.0.0.0', '127.0.0.1') };
    expect(await status('cellarstream.default.svc')).toBe(200);
  });

  it('ends connections that send their headers too slowly', async () => {
    await reopen({ headersTimeoutMs: 500 });
    const socket = await dial('GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ');
    let said = '';
    socket.on('data', (data: Buffer) => (said += data.toString()));
    await once(socket, 'close');
    expect(said).toContain('408');
  });

  it('refuses headers that are too large', async () => {
    const refused = await new Promise<number>((resolve, reject) => {
      const sent = request(server.url, { headers: { 'x-large': 'x'.repeat(10_000) } }, (answer) =>
        resolve(answer.statusCode!),
      );
      sent.once('error', reject).end();
    });
    expect(refused).toBe(431);
  });

  it('holds little for who does not read, and lets go of them', async () => {
    let told = 0;
    const status = () => JSON.stringify({ big: 'x'.repeat(4_000_000), told: ++told });
    await reopen({ idleMs: 500, endpoints: { ...options.endpoints, status } });
    const socket = await dial('GET /status/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
    socket.pause();
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const trying = setInterval(() => socket.write('\r\n'), 100); // to meet the end of it
    await closed.finally(() => clearInterval(trying));
    expect(told).toBeLessThanOrEqual(5); // those that the kernel took, and one
  });
});

it('says in one line why it can not listen', async () => {
  const taken = Number(new URL(server.url).port);
  const failure = await failureOf(from(openHttpServer({ ...options, port: taken })));
  expect(failure).toMatchObject({ code: 'SETTINGS', context: { settings: 'HTTP_PORT' } });
  expect(failure.message).toBe(
    `HTTP_PORT ${taken} is in use on 127.0.0.1: stop the process that listens there, or set another port`,
  );
  expect(await failureOf(from(openHttpServer({ ...options, host: '192.0.2.1' })))).toMatchObject({
    code: 'SETTINGS',
    context: { settings: 'HTTP_HOST' },
  });
});
