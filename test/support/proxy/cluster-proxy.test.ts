import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ClusterProxy } from './cluster-proxy.ts';
import { goDark, holdAnswer, loseAnswer } from './exchange.ts';
import { frame, request } from './frame-of.ts';
import { FrameReader, readRequest } from './kafka-frames.ts';

const END_TXN = request(26, 1, 'task').frame;
const METADATA = request(3, 6, [4, 0]).frame;

describe('ClusterProxy', () => {
  const servers: Server[] = [];
  const sockets: Socket[] = [];
  let ports: number[];
  /** By broker: the requests that have come. */
  let got: (string | undefined)[][];
  let cluster: ClusterProxy;

  /** What every broker says of all of them. */
  const brokersAt = (all: readonly number[]) =>
    frame(
      [4, 77],
      ...[[4, 0] as const, [4, all.length] as const],
      ...all.flatMap((port, k) => [[4, k] as const, '127.0.0.1', [4, port] as const, null]),
    );

  beforeEach(async () => {
    got = [[], [], []];
    ports = [];
    for (const ofBroker of got) {
      const server = createServer((socket) => {
        const requests = new FrameReader();
        socket.on('error', () => undefined);
        socket.on('data', (chunk: Buffer) => {
          for (const bytes of requests.push(chunk)) {
            const { api } = readRequest(bytes);
            ofBroker.push(api);
            socket.write(api === 'Metadata' ? brokersAt(ports) : frame([4, 77], [4, 0], [2, 7]));
          }
        });
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      servers.push(server);
      ports.push((server.address() as AddressInfo).port);
    }
    cluster = await ClusterProxy.listen(ports.map((port) => `127.0.0.1:${port}`));
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await cluster.close();
    for (const server of servers.splice(0)) server.close();
  });

  const client = async (broker: number): Promise<Socket> => {
    const socket = connect(cluster.proxies[broker]!.tcp.port, '127.0.0.1');
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  const ask = async (socket: Socket, bytes: Buffer): Promise<Buffer> => {
    socket.write(bytes);
    return ((await once(socket, 'data')) as [Buffer])[0];
  };

  it('names the proxies in place of the brokers, whichever of them is asked', async () => {
    const proxied = cluster.addresses.map((address) => Number(address.split(':')[1]));
    expect(proxied.some((port) => ports.includes(port))).toBe(false);
    for (const broker of [0, 1, 2])
      expect(await ask(await client(broker), METADATA)).toEqual(brokersAt(proxied));
  });

  it('gives what is sent to a proxy to its own broker, and counts for one and for all', async () => {
    await ask(await client(2), END_TXN);
    await ask(await client(0), END_TXN);
    expect(got).toEqual([['EndTxn'], [], ['EndTxn']]);
    expect(cluster.proxies.map((proxy) => proxy.count('EndTxn'))).toEqual([1, 0, 1]);
    expect(cluster.count('EndTxn')).toBe(2);
  });

  it('strikes a request to any broker, or to the one that is aimed at', async () => {
    const ofOne = cluster.proxies[1]!.strike({ api: 'EndTxn' }, loseAnswer);
    const ofAny = cluster.strike({ api: 'EndTxn', skip: 1 }, loseAnswer);
    await ask(await client(0), END_TXN); // is let pass
    await expect(ask(await client(1), END_TXN)).rejects.toMatchObject({ code: 'ECONNRESET' });
    await ofOne.done;
    await expect(ask(await client(2), END_TXN)).rejects.toMatchObject({ code: 'ECONNRESET' });
    await ofAny.done;
    await ask(await client(2), END_TXN);
  });

  it('afflicts every request that fits, until that is lifted', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const lift = cluster.afflict(
      { api: 'EndTxn' },
      holdAnswer(() => held),
    );
    const heard: number[] = [];
    for (const broker of [0, 1]) {
      const socket = await client(broker);
      socket.on('data', () => heard.push(broker));
      socket.write(END_TXN);
      await ask(await client(broker), METADATA);
    }
    lift();
    await ask(await client(2), END_TXN);
    expect(heard).toEqual([]);
    const both = Promise.all(
      sockets.filter((_, k) => k % 2 === 0 && k < 4).map((s) => once(s, 'data')),
    );
    release();
    await both;
    expect(heard.sort()).toEqual([0, 1]);
  });

  it('leaves the connections to all brokers in the dark, if a fault says so', async () => {
    const [one, other] = [await client(0), await client(1)];
    await ask(other, METADATA);
    const strike = cluster.strike({ api: 'EndTxn' }, goDark);
    let heard = 0;
    for (const socket of [one, other]) socket.on('data', () => (heard += 1));
    one.write(END_TXN);
    await strike.done;
    other.write(METADATA);
    await ask(await client(1), METADATA);
    expect(heard).toBe(0);
  });
});
