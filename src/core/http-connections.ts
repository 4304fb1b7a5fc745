import type { OnReadOpts } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { Dispatcher } from 'undici';
import { limitResponseTime } from './interceptors.ts';
import { proxiedConnections } from './proxied-connections.ts';
import type { Proxies } from './proxies.ts';

/**
 * How long one address of a host may take to accept a connection before the next address is tried, in ms. With Node's default of 250 ms a
 * host with several addresses and a longer round trip is never reached; below about 1,500 ms a lost SYN, which is sent again after 1 s,
 * fails as well. Too large: addresses without a route use up the connect timeout.
 */
export const ADDRESS_ATTEMPT_MS = 2_500;

/**
 * Longest time from a request to the last byte of its response, in ms. Too small: a page of 3 MB fails on a slow line, below 25 kB/s at
 * this value. Too large: a response that arrives very slowly delays a list for as long.
 */
const RESPONSE_LIMIT_MS = 120_000;

export interface HttpConnectionOptions {
  /** Certificates of the authorities to trust, in PEM. Default: those of Node. */
  readonly ca?: string | undefined;
  /** Client certificate with its chain, in PEM. Default: none. */
  readonly cert?: string | undefined;
  /** Private key of `cert`, in PEM. */
  readonly key?: string | undefined;
  readonly passphrase?: string | undefined;
  /** Default: no limit. */
  readonly connections?: number | undefined;
  /** Longest time for setting up TCP and TLS, in ms; through a proxy each step (connecting to it, CONNECT, TLS) has this time. */
  readonly connectTimeoutMs: number;
  /** Longest wait for the headers of a response, and then between two chunks of its body, in ms. */
  readonly responseTimeoutMs: number;
  /** Longest time from a request to the last byte of its response, in ms. Default 120,000. */
  readonly responseLimitMs?: number | undefined;
  /** Maximum size of a response body, in bytes. Default: no limit. */
  readonly maxResponseBytes?: number | undefined;
  /** Buffer that sockets read into. Default: a new buffer for each read. Not used inside a proxy's tunnel. */
  readonly onread?: OnReadOpts | undefined;
  /** Default: direct connections. */
  readonly proxies?: Proxies | undefined;
}

/**
 * Creates the dispatcher for requests to HTTP servers: the API and its login, the schema registry, OAuth token endpoints. All requests go
 * through such a dispatcher, so that TLS, time limits, the choice between IPv4 and IPv6, and proxies work the same everywhere.
 */
export function httpConnections(options: HttpConnectionOptions): Dispatcher {
  const { ca, cert, key, passphrase, onread, proxies } = options;
  const { connections, connectTimeoutMs, responseTimeoutMs, maxResponseBytes } = options;
  const { responseLimitMs = RESPONSE_LIMIT_MS } = options;
  const tcp = {
    timeout: connectTimeoutMs,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    rejectUnauthorized: true, // explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 changes the default
  };
  const direct = buildConnector({
    ...tcp,
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(passphrase !== undefined && { passphrase }),
    ...(onread && { onread }),
  });
  const agentWith = (connect: buildConnector.connector): Agent =>
    new Agent({
      connect,
      headersTimeout: responseTimeoutMs,
      bodyTimeout: responseTimeoutMs,
      ...(connections !== undefined && { connections }),
      ...(maxResponseBytes !== undefined && { maxResponseSize: maxResponseBytes }),
    });
  const dispatcher =
    proxies?.http || proxies?.https
      ? proxiedConnections({
          proxies,
          direct,
          toProxy: buildConnector(tcp),
          timeoutMs: connectTimeoutMs,
          agentWith,
        })
      : agentWith(direct);
  return limitResponseTime(dispatcher, responseLimitMs);
}
