import { rootCertificates } from 'node:tls';
import type { Dispatcher } from 'undici';
import { httpConnections } from '../../core/http-connections.ts';
import type { Proxies } from '../../core/proxies.ts';

/** Longest wait for a connection to a token endpoint, and for each part of its answer, in ms. */
const TIMEOUT_MS = 10_000;

/**
 * Connections to a token endpoint. It is trusted by Node's own authorities and by those of `ca`, PEM: a public identity provider may
 * serve brokers and registries with certificates of a private authority.
 */
export function tokenConnections(ca: string | undefined, proxies: Proxies | undefined): Dispatcher {
  return httpConnections({
    ca: ca === undefined ? undefined : [...rootCertificates, ca].join('\n'),
    connectTimeoutMs: TIMEOUT_MS,
    answerTimeoutMs: TIMEOUT_MS,
    proxies,
  });
}
