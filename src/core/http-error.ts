import { errors } from 'undici';
import { CellarstreamError } from './errors.ts';
import { ProxyError } from './proxy-tunnel.ts';
import { tlsError } from './tls-error.ts';
import type { TlsServer } from './tls-error.ts';

/** A server that is asked by HTTP, as errors speak of it, and its settings. */
export interface HttpServer extends Omit<TlsServer, 'ifPlain'> {
  /** Of its address: `http:` or `https:`. */
  readonly protocol: string;
}

/**
 * The error for an HTTP request that got no answer at all: as {@link tlsError} has it, else the server's `unreachable`, with a hint
 * where its port may want to be spoken to in another way. An answer with a bad status is another matter: of the API's answers
 * `statusError` makes the errors (`streams/http/http.ts`).
 */
export function httpError(cause: unknown, server: HttpServer): CellarstreamError {
  const { who, address, protocol, unreachable } = server;
  if (cause instanceof ProxyError) {
    return new CellarstreamError(unreachable, `no answer from ${who}: ${cause.message}`, { cause });
  }
  const ifPlain = `begin ${address} with http://, or give it the port that does`;
  const refused = tlsError(cause, { ...server, ifPlain });
  if (refused) return refused;
  const hint = isPlainAtTls(cause, protocol)
    ? ` (${ifTls(address)})`
    : isCutOffBeforeTls(cause)
      ? ` (if this goes on, its port may speak no TLS: ${ifPlain})`
      : '';
  return new CellarstreamError(unreachable, `no answer from ${who}${hint}`, { cause });
}

/** What to do when a server that was spoken to in plain text speaks TLS. */
export function ifTls(address: string): string {
  return `if it speaks TLS, begin ${address} with https://`;
}

/** A port that speaks TLS and meets plain text closes the connection, some after an alert that is no HTTP. */
function isPlainAtTls(cause: unknown, protocol: string): boolean {
  const isCutOff = cause instanceof errors.SocketError || cause instanceof errors.HTTPParserError;
  return protocol === 'http:' && isCutOff;
}

function isCutOffBeforeTls(cause: unknown): boolean {
  return (
    cause instanceof Error && cause.message.includes('before secure TLS connection was established')
  );
}
