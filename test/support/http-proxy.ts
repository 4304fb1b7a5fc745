import { createServer, request as forward } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Certificate } from './certificates.ts';

/** An HTTP proxy of a test, on the loopback. */
export interface HttpProxy {
  /** Its address, without credentials. */
  readonly url: string;
  /** Targets of CONNECT, as `host:port`, oldest first. */
  readonly tunnels: readonly string[];
  /** Absolute addresses that were asked for without a tunnel, oldest first. */
  readonly forwarded: readonly string[];
  readonly close: () => Promise<void>;
}

export interface HttpProxyOptions {
  /** Ports on the loopback by the host and port that clients ask for: names that resolve nowhere else. */
  readonly routes: Readonly<Record<string, number>>;
  /** `user:password` that it requires. Default: none. */
  readonly login?: string;
  /** Answer to CONNECT in place of a tunnel; undefined opens it. `silent`: none; `closed`: none, and the connection is closed. */
  readonly refuse?: (authority: string) => number | 'silent' | 'closed' | undefined;
  /** Status of the answer to each request without a tunnel, in place of the server's. */
  readonly refuseRequests?: number;
  /** Clients speak TLS with it. Default: plain HTTP. */
  readonly certificate?: Certificate;
}

export async function startHttpProxy(options: HttpProxyOptions): Promise<HttpProxy> {
  const { routes, login, refuse, refuseRequests, certificate } = options;
  const expected = login && `Basic ${Buffer.from(login).toString('base64')}`;
  const isStranger = ({ headers }: IncomingMessage): boolean =>
    expected !== undefined && headers['proxy-authorization'] !== expected;
  const tunnels: string[] = [];
  const forwarded: string[] = [];
  const sockets = new Set<Socket>();

  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    if (isStranger(request)) return void response.writeHead(407).end();
    forwarded.push(request.url!);
    if (refuseRequests !== undefined) {
      return void response.writeHead(refuseRequests).end('<h1>Access denied</h1>');
    }
    const { host, pathname, search } = new URL(request.url!);
    const { method, headers } = request;
    const behind = forward({ port: routes[host], path: pathname + search, method, headers });
    behind.on('response', (given) =>
      given.pipe(response.writeHead(given.statusCode!, given.headers)),
    );
    behind.on('error', () => response.destroy());
    request.pipe(behind);
  };
  const server = certificate ? createTlsServer(certificate, answer) : createServer(answer);
  server.on('connect', (request, client: Socket) => {
    const authority = request.url!;
    client.on('error', () => undefined);
    const status = isStranger(request) ? 407 : refuse?.(authority);
    if (status === 'silent') return;
    if (status === 'closed') return void client.destroy();
    const port = routes[authority];
    if (status !== undefined || port === undefined) {
      client.end(`HTTP/1.1 ${status ?? 502} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    tunnels.push(authority);
    const behind = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(behind).pipe(client);
    });
    sockets.add(behind);
    behind.on('error', () => client.destroy()).on('close', () => sockets.delete(behind));
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `${certificate ? 'https' : 'http'}://127.0.0.1:${port}`,
    tunnels,
    forwarded,
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
