import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { lastValueFrom } from 'rxjs';
import { Agent } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BodyPool } from '../../../src/streams/http/body.ts';
import { exchange } from '../../../src/streams/http/http.ts';
import { sharedReads } from '../../../src/streams/http/shared-reads.ts';
import { selfSigned } from '../../support/certificates.ts';
import { serve } from '../../support/http-server.ts';
import { frontOf } from '../../support/tls-front.ts';

const MANY = 12;
const LONG = 300_000;

/** Connected to a server whose side of each connection is given, too. */
async function connections(
  count: number,
): Promise<{ readonly here: Socket; readonly there: Socket }[]> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const onread = sharedReads();
  const { port } = server.address() as AddressInfo;
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
  it('puts each read where the one before was', async () => {
    const [{ here, there }] = (await connections(1)) as [{ here: Socket; there: Socket }];
    const memories = new Set<ArrayBufferLike>();
    const texts: string[] = [];
    here.on('readable', () => {
      const piece = here.read() as Buffer | null;
      if (!piece) return;
      memories.add(piece.buffer);
      texts.push(piece.toString());
    });
    for (const text of ['one', 'two', 'three']) {
      there.write(text);
      await expect.poll(() => texts.at(-1)).toBe(text);
    }
    expect(memories.size).toBe(1);
  });

  it('loses nothing of what nobody reads at once', async () => {
    const [one, other] = (await connections(2)) as [
      { here: Socket; there: Socket },
      { here: Socket; there: Socket },
    ];
    one.there.write('first ');
    await waiting(one.here, 6);
    other.there.write('OTHER ');
    await waiting(other.here, 6);
    one.there.write('second');
    await waiting(one.here, 12);
    expect(String(one.here.read())).toBe('first second');
    expect(String(other.here.read())).toBe('OTHER ');
  });

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
