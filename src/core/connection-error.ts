// Errors of connections that could not be made or gave no answer: what an operator has to change, by TLS code and by how a server closed
// the connection.

import { errors } from 'undici';
import { CellarstreamError, codeOf } from './errors.ts';
import type { ErrorCode } from './errors.ts';
import { ProxyError } from './proxied-connections.ts';

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

/** A server, as errors speak of it, and the settings that say how to reach it. */
interface TlsServer {
  /** Such as `Kafka`, or an address fit for a log line. */
  readonly who: string;
  readonly address: string;
  /** The setting of its authorities' file. */
  readonly ca: string;
  /** The settings of the client's certificate and key; undefined where there are none. */
  readonly clientCertificate?: { readonly cert: string; readonly key: string };
  /** What to do when it speaks no TLS. */
  readonly ifPlain: string;
  /** The code where waiting may help. */
  readonly unreachable: ErrorCode;
}

/** OpenSSL's and Node's codes for a certificate that nobody vouches for. */
const UNKNOWN_AUTHORITY = new Set([
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'INVALID_CA',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Theirs for one that is not fit, in whatever other way: who runs the server renews it. */
const UNFIT = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CRL_HAS_EXPIRED',
  'CRL_NOT_YET_VALID',
  'CRL_SIGNATURE_FAILURE',
  'ERROR_IN_CERT_NOT_AFTER_FIELD',
  'ERROR_IN_CERT_NOT_BEFORE_FIELD',
  'HOSTNAME_MISMATCH',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
  'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
  'UNABLE_TO_GET_CRL',
  'UNSPECIFIED',
]);

/**
 * What keeps TLS from being set up with a server, as our error; undefined for any other failure.
 *
 * `TLS_REFUSED`, for good, where a setting or a file must change, which are read at the start: an unknown authority, another host's
 * certificate, no TLS at that port, a client certificate wanted. With the server's `unreachable`, to be waited for, what is mended at the
 * server while we run: a certificate out of its time or not fit for a server, a handshake that fails for other causes.
 */
export function tlsError(error: unknown, server: TlsServer): CellarstreamError | undefined {
  const code = codeOf(error);
  if (code === undefined) return undefined;
  const { who, address, ca, ifPlain, unreachable } = server;
  const context = { tls: code };
  const refuse = (message: string) => new CellarstreamError('TLS_REFUSED', message, { context });
  const wait = (message: string) => new CellarstreamError(unreachable, message, { context });

  if (UNKNOWN_AUTHORITY.has(code)) {
    return refuse(
      `the certificate of ${who} is not signed by a trusted authority: ${ca} must name the file with its authority's certificate`,
    );
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return refuse(
      `the certificate of ${who} is for another host: ${address} must name a host that is in it${names(error)}`,
    );
  }
  if (code === 'CERT_HAS_EXPIRED') {
    return wait(`the certificate of ${who} has expired: it must be renewed there`);
  }
  if (code === 'CERT_NOT_YET_VALID') {
    return wait(
      `the certificate of ${who} is not valid yet: the clock of this machine or of the certificate's maker is wrong`,
    );
  }
  if (UNFIT.has(code)) {
    return wait(`the certificate of ${who} is not accepted: ${reason(error)}`);
  }
  const aboutClient = clientMessage(code, server);
  if (aboutClient !== undefined) return refuse(aboutClient);
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || textOf(error).includes('wrong version number')) {
    return refuse(`${who} speaks no TLS at that port: ${ifPlain}`);
  }
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') {
    return wait(`TLS with ${who} can't be set up: ${reason(error)}`);
  }
  return undefined;
}

/**
 * Alerts by which a server says that it wants a certificate of its client, or does not accept the one it was shown (RFC 8446, section
 * 6.2); OpenSSL's codes have their names at the end. Java's servers say `bad_certificate` when they were shown none.
 */
const CLIENT_ALERTS: Readonly<Record<string, string>> = {
  UNSUPPORTED_CERTIFICATE: 'it does not support its kind',
  CERTIFICATE_REVOKED: 'it is revoked',
  CERTIFICATE_EXPIRED: 'it has expired',
  CERTIFICATE_UNKNOWN: 'it does not trust it',
  UNKNOWN_CA: 'it does not trust its authority',
  ACCESS_DENIED: 'it gives it no access',
};

function clientMessage(
  code: string,
  { who, clientCertificate: settings }: TlsServer,
): string | undefined {
  const alert = /^ERR_SSL_[\w/]+_ALERT_(\w+)$/.exec(code)?.[1] ?? '';
  const isWanted = alert === 'CERTIFICATE_REQUIRED' || alert === 'BAD_CERTIFICATE';
  if (!settings) {
    return isWanted
      ? `${who} wants a client certificate, which no setting can give: let it accept a user name and a password`
      : undefined;
  }
  const { cert, key } = settings;
  if (isWanted) {
    const orOther = alert === 'BAD_CERTIFICATE' ? ', or give them a pair that it trusts' : '';
    return `${who} wants a client certificate: set ${cert} and ${key}${orOther}`;
  }
  const why = CLIENT_ALERTS[alert];
  return (
    why &&
    `${who} refuses the client certificate in ${cert} (${why}): give ${cert} and ${key} another pair`
  );
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : '';
}

/** Whom a certificate is for, in Node's words: `Host: b.example. is not in the cert's altnames: DNS:a.example`. */
function names(error: unknown): string {
  const altNames = /altnames: (.*)$/.exec(textOf(error))?.[1];
  return altNames ? ` (${altNames.replace(/[:\s]+$/, '')})` : '';
}

/**
 * OpenSSL's own words, without its places in C (`error:0A000410:SSL routines:...:handshake failure:...`), and
 * without what kafkajs puts before them.
 */
function reason(error: unknown): string {
  const text = textOf(error).replace(/^Connection error: /, '');
  return /:SSL routines:[^:]*:([^:]+)/.exec(text)?.[1] ?? text;
}
