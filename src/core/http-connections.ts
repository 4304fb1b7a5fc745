import type { OnReadOpts } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { Dispatcher } from 'undici';
import { answerLimit } from './interceptors.ts';
import { proxiedConnections } from './proxied-connections.ts';
import type { Proxies } from './proxies.ts';

/**
 * How long one address of a host may take to accept a connection before the next one is tried, in ms. With Node's default, 250 ms, a
 * host that has several addresses and is further away than that is never reached; below about 1,500 ms a lost SYN, which is sent again
 * after 1 s, fails as well. Too large: addresses without a route use up the connect timeout.
 */
export const ADDRESS_ATTEMPT_MS = 2_500;

/**
 * Longest time from a request to the last byte of its answer, in ms. Too small: a page of 3 MB fails on a slow line, below 25 kB/s at
 * this value. Too large: an answer that trickles holds up a list for as long.
 */
const ANSWER_LIMIT_MS = 120_000;

export interface HttpConnectionOptions {
  /** Certificates of the authorities to trust instead of Node's own, in PEM. */
  readonly ca?: string | undefined;
  /** Client certificate with its chain, in PEM. Default: none is presented. */
  readonly cert?: string | undefined;
  /** Private key of `cert`, in PEM. */
  readonly key?: string | undefined;
  /** Passphrase of an encrypted `key`. */
  readonly passphrase?: string | undefined;
  /** Most connections to one server. Default: no limit. */
  readonly connections?: number | undefined;
  /** Longest time for TCP and TLS to be set up, in ms; through a proxy each of its steps has this time. */
  readonly connectTimeoutMs: number;
  /** Longest wait for the headers of an answer, and then between two parts of its body, in ms. */
  readonly answerTimeoutMs: number;
  /** Longest time from a request to the last byte of its answer, in ms. Default 120,000. */
  readonly answerLimitMs?: number | undefined;
  /** Most bytes of an answer's body. Default: no limit here. */
  readonly maxAnswerBytes?: number | undefined;
  /** Memory that sockets read into. Default: new memory for each read. Not used inside a proxy's tunnel. */
  readonly onread?: OnReadOpts | undefined;
  /** Proxies of the environment. Default: direct connections. */
  readonly proxies?: Proxies | undefined;
}

/**
 * Connections to HTTP servers: the API and its login, the schema registry, token endpoints. All of them go through here, so that TLS,
 * time limits, IPv4 beside IPv6, and proxies are the same everywhere.
 */
export function httpConnections(options: HttpConnectionOptions): Dispatcher {
  const { ca, cert, key, passphrase, onread, proxies } = options;
  const { connections, connectTimeoutMs, answerTimeoutMs, maxAnswerBytes } = options;
  const { answerLimitMs = ANSWER_LIMIT_MS } = options;
  const tcp = {
    timeout: connectTimeoutMs,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    rejectUnauthorized: true, // explicit, as NODE_TLS_REJECT_UNAUTHORIZED would turn it off
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
      headersTimeout: answerTimeoutMs,
      bodyTimeout: answerTimeoutMs,
      ...(connections !== undefined && { connections }),
      ...(maxAnswerBytes !== undefined && { maxResponseSize: maxAnswerBytes }),
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
  return answerLimit(dispatcher, answerLimitMs);
}
