import { request as forward } from 'node:http';
import { serve } from '../http-server.ts';

export interface CountedRequest {
  /** When it arrived, on the monotonic clock, in ms. */
  readonly at: number;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
}

/** A server in front of an API that counts the requests which the service sends. */
export interface CountingProxy {
  readonly url: string;
  /** Oldest first. */
  readonly requests: readonly CountedRequest[];
  readonly close: () => Promise<void>;
}

/** Forwards requests as they are, with their `Host`, so that an API's links lead to the proxy. */
export async function startCountingProxy(target: string): Promise<CountingProxy> {
  const requests: CountedRequest[] = [];
  const { hostname, port } = new URL(target);
  const server = await serve((request, response) => {
    const { method = '', url: path = '', headers } = request;
    requests.push({ at: performance.now(), method, path });
    const behind = forward({ host: hostname, port, path, method, headers });
    behind.on('response', (given) =>
      given.pipe(response.writeHead(given.statusCode!, given.headers)),
    );
    behind.on('error', () => response.destroy());
    response.on('close', () => behind.destroy());
    request.pipe(behind);
  });
  return { url: server.url.origin, requests, close: () => server.close() };
}

/** Greatest number of requests in any window of `ms`. */
export function mostIn(requests: readonly CountedRequest[], ms: number): number {
  let most = 0;
  let first = 0;
  for (const [index, { at }] of requests.entries()) {
    while (requests[first]!.at <= at - ms) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
