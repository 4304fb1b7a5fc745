import type { OnReadOpts } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { Dispatcher } from 'undici';
import { limitResponseTime } from './interceptors.ts';
import { proxiedConnections } from './proxied-connections.ts';
import type { Proxies } from './proxies.ts';

/**
 * How long one address of a host may take to accept a connection before the next address is tried, in ms. If it is too large, addresses
 * without a route use up the connect timeout. If it is too small, connections fail that are slow or lose the first SYN, which is sent again
 * after 1 s.
 */
export const ADDRESS_ATTEMPT_MS = 2_500;

/**
 * Maximum time from a request to the last byte of its response, in ms. If it is too small, large responses fail on slow lines. If it is too
 * large, a response that arrives very slowly delays its list.
 */
const RESPONSE_LIMIT_MS = 120_000;

export interface HttpConnectionOptions {
  /** Certificates of the trusted authorities, in PEM. Default: those of Node. */
  readonly ca?: string | undefined;
  /** Client certificate with its chain, in PEM. Default: none. */
  readonly cert?: string | undefined;
  /** Private key of `cert`, in PEM. */
  readonly key?: string | undefined;
  /** Maximum number of connections to each server. Default: no limit. */
  readonly connections?: number | undefined;
  /**
   * Maximum time for setting up TCP and TLS, in ms. With a proxy, this time applies to each step: connecting to the proxy, CONNECT, and
   * TLS.
   */
  readonly connectTimeoutMs: number;
  /** Maximum time to wait for the headers of a response, and then for each part of its body, in ms. */
  readonly responseTimeoutMs: number;
  /** Maximum time from a request to the last byte of its response, in ms. Default 120,000. */
  readonly responseLimitMs?: number | undefined;
  /** Maximum size of a response body, in bytes. Default: no limit. */
  readonly maxResponseBytes?: number | undefined;
  /** Buffer into which all direct connections (without a proxy) read responses. Default: Node allocates a new buffer for each read. */
  readonly onread?: OnReadOpts | undefined;
  /** Proxies for the connections. Default: none, all connections are direct. */
  readonly proxies?: Proxies | undefined;
}

/** Creates the dispatcher for requests to HTTP servers: the API and its login, the schema registry, OAuth token endpoints. */
export function httpConnections(options: HttpConnectionOptions): Dispatcher {
  const { ca, cert, key, onread, proxies } = options;
  const { connectTimeoutMs: timeoutMs, responseTimeoutMs } = options;
  const tcp = {
    timeout: timeoutMs,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    rejectUnauthorized: true, // explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 changes the default
  };
  const toProxy = buildConnector(tcp);
  const direct = buildConnector({ ...tcp, ca, cert, key, onread });
  const agentWith = (connect: buildConnector.connector): Agent =>
    new Agent({
      connect,
      headersTimeout: responseTimeoutMs,
      bodyTimeout: responseTimeoutMs,
      connections: options.connections ?? null,
      maxResponseSize: options.maxResponseBytes ?? -1, // -1: no limit
    });
  const dispatcher =
    proxies?.http || proxies?.https
      ? proxiedConnections({ proxies, direct, toProxy, timeoutMs, agentWith })
      : agentWith(direct);
  return limitResponseTime(dispatcher, options.responseLimitMs ?? RESPONSE_LIMIT_MS);
}
