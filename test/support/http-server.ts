import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An HTTP server of a test. */
export interface HttpServer {
  /** Its address, without a path. */
  readonly url: URL;
  /** The requests it has met, oldest first. */
  readonly requests: readonly IncomingMessage[];
  /** Emits `request` with the socket of each request as it arrives. */
  readonly arrivals: EventEmitter;
  /** Closes the port and every connection. */
  close(): Promise<void>;
}

/** Serves on the loopback. @param onPort Default a free one. */
export async function serve(answer: RequestListener, onPort = 0): Promise<HttpServer> {
  const requests: IncomingMessage[] = [];
  const arrivals = new EventEmitter();
  const server = createServer((request, response) => {
    requests.push(request);
    arrivals.emit('request', request.socket);
    answer(request, response);
  });
  server.listen(onPort, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${port}`),
    requests,
    arrivals,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
