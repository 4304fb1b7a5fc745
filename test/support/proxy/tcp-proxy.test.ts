import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TcpProxy } from './tcp-proxy.ts';

describe('TcpProxy', () => {
  let server: Server;
  let proxy: TcpProxy;
  /** Connections as the target sees them. */
  let arrived: Socket[];
  const clients: Socket[] = [];
  const client = async (): Promise<Socket> => {
    const socket = connect(proxy.port, '127.0.0.1');
    clients.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  const echoOf = async (socket: Socket, text: string): Promise<string> => {
    socket.write(text);
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    return bytes.toString();
  };

  beforeEach(async () => {
    arrived = [];
    server = createServer((socket) => {
      arrived.push(socket);
      socket.on('error', () => undefined);
      socket.pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    proxy = await TcpProxy.listen({ target: { host: '127.0.0.1', port } });
  });
  afterEach(async () => {
    for (const socket of clients.splice(0)) socket.destroy();
    await proxy.close();
    server.close();
  });

  it('passes bytes on, as many as there are, and counts connections', async () => {
    const [one, other] = [await client(), await client()];
    expect(await echoOf(one, 'one')).toBe('one');
    expect(await echoOf(other, 'other')).toBe('other');
    const sent = Buffer.alloc(8 * 2 ** 20, 'x');
    let got = 0;
    const all = new Promise<void>((resolve) => {
      one.on('data', (bytes: Buffer) => (got += bytes.length) === sent.length && resolve());
    });
    one.write(sent);
    await all;
    expect(proxy.accepted).toBe(2);
    expect(proxy.connections).toHaveLength(2);
  });

  it('closes its end when the other end closes', async () => {
    const socket = await client();
    await echoOf(socket, 'there');
    const [connection] = proxy.connections;
    socket.end();
    await connection!.closed;
    expect(proxy.connections).toEqual([]);
    expect(arrived[0]!.readableEnded).toBe(true);
  });

  it('cuts a connection: both ends are reset, the others stay', async () => {
    const [socket, other] = [await client(), await client()];
    await echoOf(socket, 'there');
    const reset = once(socket, 'error');
    const gone = new Promise((resolve) => arrived[0]!.once('close', resolve));
    proxy.connections[0]!.cut();
    expect(await reset).toMatchObject([{ code: 'ECONNRESET' }]);
    await gone;
    expect(await echoOf(other, 'still there')).toBe('still there');
  });

  it('leaves connections in the dark: they stay open, nothing comes through, new ones are served', async () => {
    const socket = await client();
    await echoOf(socket, 'there');
    let heard = 0;
    socket.on('data', () => (heard += 1));
    proxy.darken();
    socket.write('is anybody there?');
    arrived[0]!.write('yes');
    const other = await client();
    expect(await echoOf(other, 'here')).toBe('here');
    expect(await echoOf(other, 'and here')).toBe('and here');
    expect(heard).toBe(0);
    expect(socket.destroyed).toBe(false);
    socket.destroy();
    expect(await echoOf(other, 'again')).toBe('again');
    expect(arrived[0]!.destroyed).toBe(false); // the target is not told either
  });

  it('falls silent: connections are taken and nothing is answered, until it answers new ones', async () => {
    const early = await client();
    await echoOf(early, 'there');
    proxy.fallSilent();
    const late = await client();
    let heard = 0;
    for (const socket of [early, late]) socket.on('data', () => (heard += 1)).write('anybody?');
    proxy.answer();
    expect(await echoOf(await client(), 'here')).toBe('here');
    for (const socket of [early, late]) socket.write('and now?');
    expect(await echoOf(await client(), 'still here')).toBe('still here');
    expect(heard).toBe(0);
    expect([early.destroyed, late.destroyed]).toEqual([false, false]);
  });

  it('refuses new connections until it admits them again, on the same port', async () => {
    const socket = await client();
    await echoOf(socket, 'before');
    proxy.refuse();
    await expect(client()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(await echoOf(socket, 'meanwhile')).toBe('meanwhile');
    await proxy.admit();
    expect(await echoOf(await client(), 'after')).toBe('after');
  });

  it('delays what is sent, in order, until that is lifted', async () => {
    const socket = await client();
    await echoOf(socket, 'there');
    proxy.delay(100);
    const sent = performance.now();
    expect(await echoOf(socket, 'late')).toBe('late');
    expect(performance.now() - sent).toBeGreaterThan(190); // there and back
    let text = '';
    const all = new Promise<void>((resolve) => {
      socket.on('data', (bytes: Buffer) => (text += bytes.toString()).length === 6 && resolve());
    });
    socket.write('abc');
    proxy.delay(0);
    socket.write('def');
    await all;
    expect(text).toBe('abcdef');
  });

  it('keeps the connection to the target for what is held, though the client goes', async () => {
    const socket = await client();
    await echoOf(socket, 'there');
    let release: () => void = () => undefined;
    const [connection] = proxy.connections;
    connection!.stay(new Promise<void>((resolve) => (release = resolve)));
    socket.destroy();
    const late = once(arrived[0]!, 'data');
    connection!.toTarget(Buffer.from('late'));
    expect(String((await late)[0])).toBe('late');
    release();
    await connection!.closed;
  });
});
