import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { frame, request } from './frame-of.ts';
import { correlationOf, FrameReader, readRequest } from './kafka-frames.ts';
import type { ApiName } from './kafka-frames.ts';
import {
  goDark,
  holdAnswer,
  holdRequest,
  KafkaProxy,
  loseAnswer,
  loseRequest,
  pass,
} from './kafka-proxy.ts';

const END_TXN = request(26, 1, 'task').frame;
const ADD_PARTITIONS = request(24, 1, 'task').frame;
const INIT = request(22, 1, 'task', [4, 60_000]).frame;
const INIT_NAMELESS = request(22, 1, null, [4, 60_000]).frame;

/** The same request with another correlation id. */
const numbered = (bytes: Buffer, n: number) => {
  const copy = Buffer.from(bytes);
  copy.writeInt32BE(n, 8);
  return copy;
};

describe('KafkaProxy', () => {
  let server: Server;
  let proxy: KafkaProxy;
  /** What the broker has got. */
  let got: (ApiName | undefined)[];
  const sockets: Socket[] = [];

  beforeEach(async () => {
    got = [];
    server = createServer((socket) => {
      const requests = new FrameReader();
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => {
        for (const bytes of requests.push(chunk)) {
          const { api, correlationId } = readRequest(bytes);
          got.push(api);
          socket.write(frame([4, correlationId], [4, 0], [2, 7], [4, 0]));
        }
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy = await KafkaProxy.listen(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await proxy.close();
    server.close();
  });

  const client = async (): Promise<Socket> => {
    const socket = connect(proxy.tcp.port, '127.0.0.1');
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  /** Sends a request and resolves with its answer. */
  const ask = async (socket: Socket, bytes: Buffer): Promise<Buffer> => {
    socket.write(bytes);
    return ((await once(socket, 'data')) as [Buffer])[0];
  };

  it('lets through what nothing is armed for, also byte by byte and many at once', async () => {
    const socket = await client();
    socket.setNoDelay();
    for (const byte of END_TXN) socket.write(Buffer.of(byte));
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(correlationOf(answer)).toBe(77);
    const answers = new FrameReader();
    let count = 0;
    const all = new Promise<void>((resolve) => {
      socket.on(
        'data',
        (bytes: Buffer) => (count += answers.push(bytes).length) === 20 && resolve(),
      );
    });
    socket.write(Buffer.concat(Array.from({ length: 20 }, (_, n) => numbered(ADD_PARTITIONS, n))));
    await all;
    expect([proxy.count('EndTxn'), proxy.count('AddPartitionsToTxn')]).toEqual([1, 20]);
  });

  it('loses an answer: the broker has done it, the client is reset', async () => {
    const strike = proxy.strike({ api: 'EndTxn' }, loseAnswer);
    await expect(ask(await client(), END_TXN)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(got).toEqual(['EndTxn']);
    expect(await strike.done).toMatchObject({ errorCode: 7 });
    await ask(await client(), END_TXN); // only once
  });

  it('loses a request: the broker never gets it', async () => {
    const strike = proxy.strike({ api: 'EndTxn' }, loseRequest);
    await expect(ask(await client(), END_TXN)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await strike.done).toBeUndefined();
    expect(got).toEqual([]);
  });

  it('holds an answer back until it is told', async () => {
    let release: () => void = () => undefined;
    const until = new Promise<void>((resolve) => (release = resolve));
    const strike = proxy.strike(
      { api: 'EndTxn' },
      holdAnswer(() => until),
    );
    const socket = await client();
    socket.write(END_TXN);
    await strike.begun;
    await ask(socket, numbered(ADD_PARTITIONS, 78)); // overtakes it
    expect(got).toEqual(['EndTxn', 'AddPartitionsToTxn']);
    const answer = once(socket, 'data');
    release();
    await answer;
    await strike.done;
  });

  it('holds a request back until it is told, though its client has gone by then', async () => {
    let release: () => void = () => undefined;
    const until = new Promise<void>((resolve) => (release = resolve));
    const strike = proxy.strike(
      { api: 'EndTxn' },
      holdRequest(() => until),
    );
    const socket = await client();
    socket.write(END_TXN);
    await strike.begun;
    socket.destroy();
    await ask(await client(), ADD_PARTITIONS);
    expect(got).toEqual(['AddPartitionsToTxn']);
    release();
    expect(await strike.done).toMatchObject({ errorCode: 7 });
    expect(got).toEqual(['AddPartitionsToTxn', 'EndTxn']);
  });

  it('leaves all connections in the dark, and serves new ones', async () => {
    const [socket, other] = [await client(), await client()];
    await ask(other, ADD_PARTITIONS);
    const strike = proxy.strike({ api: 'EndTxn' }, goDark);
    let heard = 0;
    for (const one of [socket, other]) one.on('data', () => (heard += 1));
    socket.write(END_TXN);
    await strike.done;
    other.write(ADD_PARTITIONS);
    await ask(await client(), END_TXN);
    expect(got).toEqual(['AddPartitionsToTxn', 'EndTxn', 'EndTxn']);
    expect(heard).toBe(0);
  });

  it('strikes the request that is aimed at: so many later, or as it says', async () => {
    const socket = await client();
    const third = proxy.strike({ api: 'EndTxn', skip: 2 }, pass).done;
    const ofTask = proxy.strike(
      { api: 'InitProducerId', where: ({ id }) => id === 'task' },
      pass,
    ).done;
    const struck: string[] = [];
    void third.then(() => struck.push('third'));
    void ofTask.then(() => struck.push('of the task'));
    await ask(socket, END_TXN);
    await ask(socket, INIT_NAMELESS);
    await ask(socket, END_TXN);
    expect(struck).toEqual([]);
    await ask(socket, END_TXN);
    await ask(socket, INIT);
    await Promise.all([third, ofTask]);
    expect(struck).toEqual(['third', 'of the task']);
  });
});
