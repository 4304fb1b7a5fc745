import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { lastValueFrom } from 'rxjs';
import { Agent } from 'undici';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { BodyPool } from '../../../src/streams/http/body.ts';
import { exchange } from '../../../src/streams/http/http.ts';
import { sharedReads } from '../../../src/streams/http/response-reader.ts';
import { selfSigned } from '../../support/certificates.ts';
import type { Certificate } from '../../support/certificates.ts';
import { serve } from '../../support/http-server.ts';
import { frontOf } from '../../support/tls-front.ts';

const MANY = 12;
const LONG = 300_000;

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n';

interface Pair {
  readonly here: Socket;
  readonly there: Socket;
}

async function listening(
  onConnection: (socket: Socket) => void = () => undefined,
  certificate?: Certificate,
) {
  const open = certificate
    ? createSecureServer(certificate, onConnection)
    : createServer(onConnection);
  const server = open.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { server, port: (server.address() as AddressInfo).port };
}

/** Connected to a server whose side of each connection is given, too. */
async function connections(count: number): Promise<Pair[]> {
  const { server, port } = await listening();
  const onread = sharedReads();
  const pairs = [];
  for (let nth = 0; nth < count; nth++) {
    const accepted = once(server, 'connection');
    const here = connect({ port, host: '127.0.0.1', onread });
    const [there] = (await accepted) as [Socket];
    onTestFinished(() => void here.destroy());
    onTestFinished(() => void there.destroy());
    pairs.push({ here, there });
  }
  return pairs;
}

/** Resolves when a socket has so much to be read. */
async function waiting(socket: Socket, bytes: number): Promise<void> {
  while (socket.readableLength < bytes) await new Promise((resolve) => setImmediate(resolve));
}

describe('sharedReads', () => {
  it('puts each read of a body where the one before was', async () => {
    const [{ here, there }] = (await connections(1)) as [Pair];
    const memories = new Set<ArrayBufferLike>();
    here.write('GET /');
    for (const text of [`${HEAD}one`, 'two', 'three']) {
      const readable = once(here, 'readable');
      there.write(text);
      await readable;
      const piece = here.read() as Buffer;
      expect(piece.toString()).toBe(text);
      memories.add(piece.buffer);
    }
    expect(memories.size).toBe(1);
  });

  it('loses nothing of what nobody reads at once', async () => {
    const [one, other] = (await connections(2)) as [Pair, Pair];
    for (const { here } of [one, other]) here.write('GET /');
    one.there.write(`${HEAD}first `);
    await waiting(one.here, HEAD.length + 6);
    other.there.write(`${HEAD}OTHER `);
    await waiting(other.here, HEAD.length + 6);
    one.there.write('second');
    await waiting(one.here, HEAD.length + 12);
    expect(String(one.here.read())).toBe(`${HEAD}first second`);
    expect(String(other.here.read())).toBe(`${HEAD}OTHER `);
  });

  const PARTED: [string, string, string][] = [
    ['a name', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nretry-af', 'ter: 7\r\n\r\nok'],
    ['a value', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nretry-after: ', '7\r\n\r\nok'],
    ['its end', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nretry-after: 7\r\n\r', '\nok'],
    ['its first line', 'HTTP/1', '.1 200 OK\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\nok'],
    [
      'the one that follows an interim one',
      'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\nretry-',
      'after: 7\r\n\r\nok',
    ],
  ];
  it.each(
    PARTED.flatMap((parted) => ['http', 'https'].map((scheme) => [scheme, ...parted] as const)),
  )(
    'keeps a head over %s that comes in two reads, parted in %s',
    async (scheme, _, start, rest) => {
      const certificate = selfSigned();
      const asked: Socket[] = [];
      const { port } = await listening(
        (socket) => void socket.on('data', () => asked.push(socket)),
        scheme === 'https' ? certificate : undefined,
      );
      const connect = { ca: certificate.cert, onread: sharedReads() };
      const dispatcher = new Agent({ connections: 2, connect });
      onTestFinished(() => dispatcher.destroy());
      const ask = () => {
        const url = new URL(`${scheme}://127.0.0.1:${port}/`);
        return lastValueFrom(exchange({ dispatcher, method: 'GET', url, maxBytes: LONG }));
      };
      const before = [ask(), ask()];
      await vi.waitUntil(() => asked.length === 2);
      for (const socket of asked)
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nbefore');
      await Promise.all(before);

      const answers = [ask(), ask()]; // over the same connections
      await vi.waitUntil(() => asked.length === 4);
      const [slow, quick] = asked.slice(2) as [Socket, Socket];
      expect(new Set(asked).size).toBe(2);
      slow.write(start);
      // It is read before the other is: both are read by this process, in the order in which they came.
      await new Promise((resolve) => setImmediate(resolve));
      quick.write(
        `HTTP/1.1 200 OK\r\nx-1: ${'1'.repeat(90)}\r\nretry-after: 9\r\ncontent-length: 5\r\n\r\nother`,
      );
      await Promise.race(answers);
      slow.write(rest);
      const all = await Promise.all(answers);
      const told = all.map(({ text, retryAfterMs }) => ({ text, retryAfterMs }));
      expect(told).toContainEqual({ text: 'ok', retryAfterMs: 7_000 });
      expect(told).toContainEqual({ text: 'other', retryAfterMs: 9_000 });
    },
  );

  it.each(['http', 'https'])(
    'gives answers over %s that come at once, each its own',
    async (scheme) => {
      const bodyOf = (nth: number) =>
        Array.from({ length: LONG / 10 }, (_, at) => `${nth} ${at} `.padEnd(10, '.')).join('');
      const server = await serve((request, response) => {
        const body = bodyOf(Number(request.url!.slice(1)));
        for (let at = 0; at < body.length; at += 7_001) response.write(body.slice(at, at + 7_001));
        response.end();
      });
      onTestFinished(() => server.close());
      const certificate = selfSigned();
      const front = await frontOf(server.url.origin, scheme === 'https' ? { certificate } : {});
      onTestFinished(() => front.close());
      const dispatcher = new Agent({ connect: { ca: certificate.cert, onread: sharedReads() } });
      onTestFinished(() => dispatcher.destroy());
      const bodies = new BodyPool();
      const all = Array.from({ length: MANY }, async (_, nth) => {
        const url = new URL(`/${nth}`, front.url);
        const { body } = await lastValueFrom(
          exchange({ dispatcher, method: 'GET', url, maxBytes: 2 * LONG, bodies }),
        );
        return body.bytes.toString() === bodyOf(nth);
      });
      expect(await Promise.all(all)).toEqual(Array(MANY).fill(true));
    },
  );
});
