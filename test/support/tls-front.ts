import { once } from 'node:events';
import { createServer as createPlainServer, request as forward } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import type { Certificate } from './certificates.ts';

export interface Front {
  /** Its origin. */
  readonly url: string;
  readonly close: () => Promise<void>;
}

export interface FrontOptions {
  /** Default none: plain HTTP. */
  readonly certificate?: Certificate;
  /** `user:password` that it asks for (HTTP Basic). Default none. */
  readonly login?: string;
  /** Shown each request. */
  readonly onRequest?: (request: IncomingMessage) => void;
}

/** What operators put before a server that does neither: TLS and a login, on 127.0.0.1. */
export async function frontOf(origin: string, options: FrontOptions = {}): Promise<Front> {
  const { hostname, port, host } = new URL(origin);
  const { certificate, login, onRequest } = options;
  const expected = login && `Basic ${Buffer.from(login).toString('base64')}`;

  const answer = (request: IncomingMessage, response: ServerResponse) => {
    if (expected && request.headers.authorization !== expected) {
      response.writeHead(401, { 'www-authenticate': 'Basic', 'content-type': 'text/html' });
      return response.end('<h1>401 Authorization Required</h1>');
    }
    onRequest?.(request);
    const { method, url, headers } = request;
    const behind = forward({ hostname, port, path: url, method, headers: { ...headers, host } });
    behind.on('response', (given) => {
      response.writeHead(given.statusCode!, given.headers);
      pipeline(given, response, () => undefined); // what breaks off there breaks off here
    });
    behind.on('error', () => response.destroy());
    return request.pipe(behind);
  };
  const server = certificate ? createServer(certificate, answer) : createPlainServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `${certificate ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
