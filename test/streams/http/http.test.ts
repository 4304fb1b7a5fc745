import { once } from 'node:events';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { firstValueFrom, lastValueFrom } from 'rxjs';
import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { describeError, isTimeout } from '../../../src/core/errors.ts';
import { httpConnections } from '../../../src/core/http-connections.ts';
import { VERSION } from '../../../src/core/version.ts';
import { Body, BodyPool } from '../../../src/streams/http/body.ts';
import { exchange, statusError, loggableAddress } from '../../../src/streams/http/http.ts';
import type { HttpResponse, HttpRequest } from '../../../src/streams/http/http.ts';
import { sharedReads } from '../../../src/streams/http/response-reader.ts';
import { failureOf } from '../../support/failure.ts';
import { serve } from '../../support/http-server.ts';
import type { HttpServer } from '../../support/http-server.ts';

let dispatcher: Agent;
let server: HttpServer | undefined;

beforeEach(() => {
  dispatcher = new Agent({ connect: { onread: sharedReads() } }); // as the service has it
});
afterEach(async () => {
  await dispatcher.destroy();
  await server?.close();
  server = undefined;
});

/** A request to a server that answers so. */
async function request(
  answer: RequestListener,
  options: Partial<HttpRequest> = {},
): Promise<HttpRequest> {
  server = await serve(answer);
  const url = new URL('/v1/orders?orderNumber=s4mple', server.url);
  return { dispatcher, method: 'GET', url, maxBytes: 1_000, ...options };
}

const ask = async (answer: RequestListener, options?: Partial<HttpRequest>) =>
  lastValueFrom(exchange(await request(answer, options)));

const fail = async (answer: RequestListener, options?: Partial<HttpRequest>) =>
  failureOf(exchange(await request(answer, options)));

describe('exchange', () => {
  it('gives the whole answer, whatever its status', async () => {
    const answer = await ask((_, response) => {
      response.writeHead(418, {
        date: 'Thu, 05 Mar 2026 12:00:00 GMT',
        'retry-after': '7',
        'X-Total-Count': '12',
      });
      response.write('{"a":');
      response.end('"Grüner Veltliner"}');
    });
    expect(answer).toEqual({
      status: 418,
      body: expect.any(Body) as Body,
      text: '{"a":"Grüner Veltliner"}',
      headers: expect.objectContaining({ 'x-total-count': '12' }) as object,
      date: Date.parse('2026-03-05T12:00:00Z'),
      retryAfterMs: 7_000,
    });
    expect(answer.body.bytes).toEqual(Buffer.from('{"a":"Grüner Veltliner"}'));
  });

  it('sends method, path, query, headers and body', async () => {
    let body = '';
    await ask(
      (request, response) => {
        request.on('data', (part) => (body += part));
        request.on('end', () => response.end());
      },
      { method: 'POST', headers: { authorization: 'Bearer t' }, body: 'körper' },
    );
    const [met] = server!.requests;
    expect(met).toMatchObject({ method: 'POST', url: '/v1/orders?orderNumber=s4mple' });
    expect(met!.headers).toMatchObject({
      authorization: 'Bearer t',
      'user-agent': `cellarstream/${VERSION}`, // without one, firewalls answer 403
      accept: 'application/json',
      'accept-encoding': 'gzip',
    });
    expect(body).toBe('körper');
  });

  it('passes over an interim answer', async () => {
    const answer = await ask((_, response) => {
      response.writeProcessing();
      response.end('at last');
    });
    expect(answer).toMatchObject({ status: 200, text: 'at last' });
  });

  it.each([
    ['says how long it is', { 'content-length': 5_000_000 }],
    ['does not', {}],
  ])('reads an answer of any length that %s', async (_, headers) => {
    const text = Array.from({ length: 1_000_000 }, (__, nth) =>
      String(nth % 100_000).padEnd(5),
    ).join('');
    const answer = await ask(
      (__, response) => {
        response.writeHead(200, headers);
        response.end(text);
      },
      { maxBytes: 5_000_000, bodies: new BodyPool() },
    );
    expect(answer.text === text).toBe(true);
  });

  it('gives back the memory of an answer that does not come to its end', async () => {
    const bodies = new BodyPool();
    const memory = bodies.take(100_000);
    bodies.giveBack(memory);
    await fail(
      (_, response) => {
        response.writeHead(200, { 'content-length': 100_000 });
        response.write('half', () => response.socket!.destroySoon());
      },
      { maxBytes: 200_000, bodies },
    );
    expect(bodies.take(100_000)).toBe(memory);
  });

  it('unpacks gzip', async () => {
    const packed: RequestListener = (_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(gzipSync('x'.repeat(1_000)));
    };
    expect((await ask(packed)).text).toBe('x'.repeat(1_000));
  });

  it.each(['bytes 0-9/10', 'bytes 0-9/*', '0-9/3573', 'items 10-19/100'])(
    'takes a 206 with Content-Range %s for a whole answer',
    async (range) => {
      const answer = await ask((_, response) => {
        response.writeHead(206, { 'content-range': range });
        response.end('0123456789');
      });
      expect(answer).toMatchObject({ status: 206, text: '0123456789' });
    },
  );

  it('publishes no U+FFFD where the charset is Latin-1', async () => {
    const bodies = new BodyPool();
    const answer = await ask(
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json; charset=ISO-8859-1' });
        response.end(gzipSync(Buffer.from('"Ren\xe9"', 'latin1')));
      },
      { bodies },
    );
    expect(answer.text).toBe('"René"');
  });

  it.each<[string, RequestListener]>([
    [
      'an answer that trickles for ever',
      (request, response) => {
        const more = setInterval(() => response.write(' '), 5);
        request.socket.on('close', () => clearInterval(more));
      },
    ],
    [
      'interim answers without end',
      (request, response) => {
        const more = setInterval(() => response.writeProcessing(), 5);
        request.socket.on('close', () => clearInterval(more));
      },
    ],
  ])('gives up %s', async (_, trickle) => {
    const connections = httpConnections({
      connectTimeoutMs: 1_000,
      responseTimeoutMs: 1_000,
      responseLimitMs: 100,
      onread: sharedReads(),
    });
    onTestFinished(() => connections.destroy());
    const sending = await request(trickle, { dispatcher: connections });
    const failed = failureOf(exchange(sending));
    const [socket] = (await once(server!.arrivals, 'request')) as [Socket];
    const closed = new Promise((resolve) => socket.once('close', resolve)); // reset perhaps
    const error = await failed;
    expect(error).toMatchObject({ code: 'API_UNREACHABLE' });
    expect(describeError(error)).toMatch(
      /^no answer from .*\/v1\/orders: the response was not complete 0.1 s after the request was sent/,
    );
    expect(isTimeout(error)).toBe(true);
    await closed;
  });

  it('takes an empty answer for empty, though it claims to be gzip', async () => {
    const empty: RequestListener = (_, response) => {
      response.writeHead(401, { 'content-encoding': 'gzip' });
      response.end();
    };
    expect(await ask(empty)).toMatchObject({ status: 401, text: '' });
  });

  it.each<[string, RequestListener]>([
    [
      'an answer that is cut off',
      (_, response) => {
        response.writeHead(200, { 'content-length': 100 });
        response.write('half', () => response.socket!.destroySoon());
      },
    ],
    [
      'a chunked answer that is cut off',
      (_, response) => {
        response.writeHead(200);
        response.write('half', () => response.socket!.destroySoon());
      },
    ],
    [
      'gzip that is cut off',
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' });
        response.end(gzipSync('x'.repeat(500)).subarray(0, -5));
      },
    ],
    [
      'what is neither text nor its content coding',
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'br' });
        response.end(Buffer.from('xxxx\0xxx'));
      },
    ],
    [
      'a part of an answer, which was not asked for',
      (_, response) => {
        response.writeHead(206, { 'content-range': 'bytes 0-9/20' });
        response.end('0123456789');
      },
    ],
    [
      'a charset that is not known',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json; charset=x-mac' });
        response.end(Buffer.from('"Ren\xe9"', 'latin1'));
      },
    ],
    ['more than maxBytes', (_, response) => response.end('x'.repeat(1_001))],
    [
      'gzip that unpacks to more than maxBytes',
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' });
        response.end(gzipSync('x'.repeat(1_001)));
      },
    ],
  ])('errors with API_ANSWER on %s', async (_, answer) => {
    const error = await fail(answer);
    expect(error).toMatchObject({ code: 'API_ANSWER' });
    expect(error.message).toContain('/v1/orders');
  });

  it('stops reading an answer that is too large', async () => {
    const error = await fail((_, response) => {
      const more = () => {
        while (response.write('x'.repeat(10_000))); // for ever, as far as the client reads
      };
      response.on('drain', more);
      more();
    });
    expect(error).toMatchObject({ code: 'API_ANSWER' });
  });

  it('does not follow a redirect, which would take the token along', async () => {
    const answer = await ask(
      (_, response) => {
        response.writeHead(302, { location: '/elsewhere' });
        response.end();
      },
      { headers: { authorization: 'Bearer t' } },
    );
    expect(answer.status).toBe(302);
    expect(server!.requests).toHaveLength(1);
  });

  it.each<[string, RequestListener]>([
    ['drops the connection', (request) => request.socket.destroy()],
    ['speaks no HTTP', (request) => request.socket.end('220 mail.example ESMTP\r\n')],
  ])('errors with API_UNREACHABLE when the server %s', async (_, answer) => {
    expect(await fail(answer)).toMatchObject({ code: 'API_UNREACHABLE' });
  });

  it('errors with API_UNREACHABLE when nobody listens', async () => {
    const { url, ...rest } = await request(() => undefined);
    await server!.close();
    server = undefined;
    const error = await failureOf(exchange({ ...rest, url }));
    expect(error).toMatchObject({ code: 'API_UNREACHABLE' });
    expect(describeError(error)).toMatch(
      /^no answer from http:\/\/127\.0\.0\.1:\d+\/v1\/orders: connect ECONNREFUSED/,
    );
  });

  it('errors with API_UNREACHABLE when the headers or the body take too long', async () => {
    const impatient = new Agent({ headersTimeout: 20, bodyTimeout: 20 });
    const silent = await request(() => undefined, { dispatcher: impatient });
    const stalling = await serve((_, response) => void response.write('half'));
    const errors = await Promise.all([
      failureOf(exchange(silent)),
      failureOf(exchange({ ...silent, url: stalling.url })),
    ]);
    expect(errors.map(describeError)).toEqual([
      expect.stringContaining('Headers Timeout Error'),
      expect.stringContaining('Body Timeout Error'),
    ]);
    expect(errors.map(({ code }) => code)).toEqual(['API_UNREACHABLE', 'API_UNREACHABLE']);
    await impatient.destroy();
    await stalling.close();
  });

  it('closes the request when unsubscribed', async () => {
    const heard: unknown[] = [];
    const exchange$ = exchange(await request(() => undefined));
    const subscription = exchange$.subscribe({
      next: (value) => heard.push(value),
      error: (error) => heard.push(error),
    });
    const [socket] = (await once(server!.arrivals, 'request')) as [Socket];
    subscription.unsubscribe();
    await once(socket, 'close');
    expect(heard).toEqual([]);
  });

  it('asks when subscribed, and for each subscription', async () => {
    const exchange$ = exchange(await request((_, response) => response.end('ok')));
    expect(server!.requests).toHaveLength(0);
    await firstValueFrom(exchange$);
    await firstValueFrom(exchange$);
    expect(server!.requests).toHaveLength(2);
  });

  it('never shows a query, credentials or a header in an error', async () => {
    const secrets = /s4mple|s3cret|t0ken|p4ssw0rd/;
    const sent = await request((request) => request.socket.destroy(), {
      headers: { authorization: 'Bearer t0ken' },
      method: 'POST',
      body: '{"apiKey":"s3cret"}',
    });
    sent.url.username = 'user';
    sent.url.password = 'p4ssw0rd';
    const errors = [
      await failureOf(exchange(sent)),
      await failureOf(exchange({ ...sent, headers: { authorization: 'Bearer t0ken\n' } })),
      statusError(sent.url, { status: 500, text: 's3cret' } as HttpResponse),
      statusError(sent.url, { status: 429, text: 's3cret' } as HttpResponse),
    ];
    for (const error of errors) {
      expect(describeError(error)).not.toMatch(secrets);
      expect(inspect(error, { depth: 10 })).not.toMatch(secrets);
    }
  });
});

describe('a port that wants to be spoken to in another way', () => {
  /** Bytes that it answers before it closes. */
  const closing = async (bytes: readonly number[]): Promise<number> => {
    const port = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(Buffer.from(bytes)));
    });
    port.listen(0, '127.0.0.1');
    onTestFinished(() => void port.close());
    await once(port, 'listening');
    return (port.address() as AddressInfo).port;
  };
  const failure = async (scheme: string, bytes: readonly number[], setting?: string) => {
    const url = new URL(`${scheme}://127.0.0.1:${await closing(bytes)}/v1/orders`);
    const how = { dispatcher, method: 'GET', url, maxBytes: 1_000 } as const;
    return failureOf(exchange({ ...how, ...(setting !== undefined && { setting }) }));
  };
  const ALERT = [0x15, 3, 1, 0, 2, 2, 0x46];

  it.each([
    ['closes', []],
    ['says so in an alert first', ALERT],
  ])('is named with its setting where it speaks TLS and %s', async (_, bytes) => {
    const error = await failure('http', bytes);
    expect(error).toMatchObject({ code: 'API_UNREACHABLE' });
    expect(error.message).toMatch(/ \(if the port uses TLS, begin API_BASE_URL with https:\/\/\)$/);
  });

  it('is named with its setting where it speaks no TLS and closes', async () => {
    const error = await failure('https', []);
    expect(error).toMatchObject({ code: 'API_UNREACHABLE' });
    expect(error.message).toMatch(
      /orders \(if this persists, the port may not use TLS: begin API_BASE_URL with http:\/\//,
    );
  });

  it('is named with the setting of its own', async () => {
    expect((await failure('http', ALERT, 'API_LOGIN_URL')).message).toContain(
      'begin API_LOGIN_URL with',
    );
  });
});

describe('retryAfterMs', () => {
  const NOW = 'Thu, 05 Mar 2026 12:00:00 GMT';
  it.each([
    ['0', NOW, 0],
    ['7', NOW, 7_000],
    ['999999', NOW, 600_000], // a server's word is believed up to 10 minutes
    ['Thu, 05 Mar 2026 12:00:42 GMT', NOW, 42_000], // by the server's own clock
    ['Thu, 05 Mar 2026 11:00:00 GMT', NOW, 0],
    ['Thu, 05 Mar 2026 12:00:42 GMT', undefined, undefined],
    ['soon', NOW, undefined],
    ['1.5', NOW, 1_500], // which Date.parse takes for a day in 2001
    ['2.0', undefined, 2_000],
    ['-5', NOW, undefined],
    [undefined, NOW, undefined],
  ])('of Retry-After %s at %s is %s', async (retryAfter, date, expected) => {
    const answer = await ask((_, response) => {
      response.sendDate = false;
      response.writeHead(429, {
        ...(date !== undefined && { date }),
        ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
      });
      response.end();
    });
    expect(answer.retryAfterMs).toBe(expected);
  });
});

describe('date', () => {
  it.each([
    ['Thu, 05 Mar 2026 12:00:00 GMT', Date.UTC(2026, 2, 5, 12)],
    ['now', undefined],
    [undefined, undefined],
  ])('of Date %s is %s', async (date, expected) => {
    const answer = await ask((_, response) => {
      response.sendDate = false;
      response.writeHead(200, date === undefined ? {} : { date });
      response.end();
    });
    expect(answer.date).toBe(expected);
  });
});

describe('statusError', () => {
  const url = new URL('https://user:p4ss@api.example/v1/orders?offset=3');
  const answer = {
    body: new Body(Buffer.of()),
    text: '',
    headers: {},
    date: undefined,
    ageMs: undefined,
    retryAfterMs: 7,
  };

  it('is QUOTA_EXCEEDED for a status with that meaning, else API_STATUS, with what is known', () => {
    const described = { meaning: 'quota' } as const;
    const tooMany = { ...answer, status: 429 };
    const refused = statusError(url, tooMany, { offset: 3 }, undefined, described);
    expect(refused).toMatchObject({
      code: 'QUOTA_EXCEEDED',
      context: { status: 429, retryAfterMs: 7, offset: 3 },
    });
    expect(statusError(url, { ...answer, status: 503, retryAfterMs: undefined })).toMatchObject({
      code: 'API_STATUS',
      message: 'https://api.example/v1/orders answered 503',
      context: { status: 503 },
    });
  });

  it('names an address without its query and credentials', () => {
    expect(loggableAddress(url)).toBe('https://api.example/v1/orders');
  });
});
