// Errors for HTTP requests that brought no response. Their messages say what an operator has to change, according to how the server closed
// the connection.

import { errors } from 'undici';
import { CellarstreamError } from './errors.ts';
import { ProxyError } from './proxied-connections.ts';
import { tlsError, type TlsPeer } from './tls-error.ts';

/** An HTTP server, with its name and the names of its settings for error messages. */
export interface HttpServer extends Omit<TlsPeer, 'plainTextAdvice'> {
  /** `http:` or `https:`. */
  readonly protocol: string;
}

/**
 * Returns the error for an HTTP request without a response: that of {@link tlsError} if TLS failed, otherwise one with the code
 * `server.unreachable`.
 */
export function httpError(cause: unknown, server: HttpServer): CellarstreamError {
  const { who, address, protocol, unreachable } = server;
  if (cause instanceof ProxyError) {
    return new CellarstreamError(unreachable, `no answer from ${who}: ${cause.message}`, { cause });
  }
  const plainTextAdvice = `begin ${address} with http://, or set it to the port that uses TLS`;
  const refused = tlsError(cause, { ...server, plainTextAdvice });
  if (refused) return refused;
  const noAnswer = (hint: string) =>
    new CellarstreamError(unreachable, `no answer from ${who}${hint}`, { cause });
  // A port that expects TLS closes a connection with plain HTTP, possibly after a TLS alert.
  const isCutOff = cause instanceof errors.SocketError || cause instanceof errors.HTTPParserError;
  if (protocol === 'http:' && isCutOff) return noAnswer(` (${ifTls(address)})`);
  // A port that does not support TLS, for example, closes the connection during the TLS handshake.
  const isCutOffBeforeTls =
    cause instanceof Error &&
    cause.message.includes('before secure TLS connection was established');
  if (!isCutOffBeforeTls) return noAnswer('');
  return noAnswer(` (if this persists, the port may not use TLS: ${plainTextAdvice})`);
}

/** Returns advice for a failed plain-text request to a port that may use TLS. `address`: name of the setting with the address. */
export function ifTls(address: string): string {
  return `if the port uses TLS, begin ${address} with https://`;
}
