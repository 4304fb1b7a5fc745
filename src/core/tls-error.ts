// Errors for TLS connections that failed. Their messages say what an operator has to change, according to the TLS error code. Kafka's errors
// need them too, so this file imports no HTTP client.

import { CellarstreamError, codeOf } from './errors.ts';
import type { ErrorCode } from './errors.ts';

/** Describes a server for {@link tlsError}: its name, the names of its settings, and the code of errors that are retried. */
export interface TlsPeer {
  /** The server in error messages: a name such as `Kafka`, or its address without credentials. */
  readonly who: string;
  /** Name of the setting with the server's address. */
  readonly address: string;
  /** Name of the setting with the path of the file of trusted certificate authorities. */
  readonly ca: string;
  /** Names of the settings for the client's certificate and key. Undefined if there are no such settings. */
  readonly clientCertificate?: { readonly cert: string; readonly key: string };
  /** Advice that the error message gives if the server's port does not support TLS. */
  readonly plainTextAdvice: string;
  /** Code of errors that the server's operator can resolve, such as an expired certificate. They are retried. */
  readonly unreachable: ErrorCode;
}

/** Error codes of OpenSSL and Node for a certificate that is not signed by a trusted authority. */
const UNKNOWN_AUTHORITY = new Set([
  ...['CERT_SIGNATURE_FAILURE', 'CERT_UNTRUSTED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'INVALID_CA'],
  ...['SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT'],
  ...['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
]);

/**
 * Error codes of OpenSSL and Node for faults of a server's certificate or revocation list that the server's operator must correct. Unknown
 * authorities and expired certificates have other codes.
 */
const INVALID_CERTIFICATE = new Set([
  ...['CERT_CHAIN_TOO_LONG', 'CERT_REJECTED', 'CERT_REVOKED', 'HOSTNAME_MISMATCH'],
  ...['ERROR_IN_CERT_NOT_AFTER_FIELD', 'ERROR_IN_CERT_NOT_BEFORE_FIELD'],
  ...['CRL_HAS_EXPIRED', 'CRL_NOT_YET_VALID', 'CRL_SIGNATURE_FAILURE', 'UNABLE_TO_GET_CRL'],
  ...['UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY', 'UNABLE_TO_DECRYPT_CERT_SIGNATURE'],
  ...['INVALID_PURPOSE', 'PATH_LENGTH_EXCEEDED', 'UNSPECIFIED'],
]);

/**
 * Returns the error for a failed TLS connection; undefined if the failure does not concern TLS. The error has one of these codes:
 *
 * - `TLS_REFUSED`, which is final: a setting or a file of this process must change, for example if the certificate's authority is unknown.
 * - `server.unreachable`, which is retried: the server must change, for example if its certificate has expired.
 */
export function tlsError(error: unknown, server: TlsPeer): CellarstreamError | undefined {
  const code = codeOf(error);
  if (code === undefined) return undefined;
  const { who, address, ca, plainTextAdvice, unreachable } = server;
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
      `the certificate of ${who} is for another host: ${address} must name a host that is in it${mismatchReason(error)}`,
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
  if (INVALID_CERTIFICATE.has(code)) {
    return wait(`the certificate of ${who} is not accepted: ${opensslReason(error)}`);
  }
  const aboutClient = clientMessage(code, server);
  if (aboutClient !== undefined) return refuse(aboutClient);
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || textOf(error).includes('wrong version number')) {
    return refuse(`${who} does not use TLS at that port: ${plainTextAdvice}`);
  }
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') {
    return wait(`TLS with ${who} can't be set up: ${opensslReason(error)}`);
  }
  return undefined;
}

/** Reasons why a server refuses the client's certificate, for error messages, by the name of the TLS alert (RFC 8446, section 6.2). */
const CLIENT_ALERTS: Readonly<Record<string, string>> = {
  UNSUPPORTED_CERTIFICATE: 'its type is not supported',
  CERTIFICATE_REVOKED: 'it is revoked',
  CERTIFICATE_EXPIRED: 'it has expired',
  CERTIFICATE_UNKNOWN: 'it is not trusted',
  UNKNOWN_CA: 'its authority is not trusted',
  ACCESS_DENIED: 'it gives no access',
};

/** Returns the error message if `code` is a known TLS alert about the client's certificate; otherwise undefined. */
function clientMessage(
  code: string,
  { who, clientCertificate: settings }: TlsPeer,
): string | undefined {
  const alert = /^ERR_SSL_[\w/]+_ALERT_(\w+)$/.exec(code)?.[1] ?? '';
  // Java servers send `bad_certificate` to a client that presents no certificate.
  const isWanted = alert === 'CERTIFICATE_REQUIRED' || alert === 'BAD_CERTIFICATE';
  if (!settings) {
    return isWanted
      ? `${who} requires a client certificate, for which there is no setting: configure it to accept a user name and a password`
      : undefined;
  }
  const { cert, key } = settings;
  if (isWanted) {
    const orOther =
      alert === 'BAD_CERTIFICATE'
        ? '; if they are set, set them to a certificate that the server trusts'
        : '';
    return `${who} requires a client certificate: set ${cert} and ${key}${orOther}`;
  }
  const why = CLIENT_ALERTS[alert];
  return (
    why &&
    `${who} refuses the client certificate in ${cert} (${why}): set ${cert} and ${key} to another certificate and its key`
  );
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : '';
}

/** Returns Node's explanation why a certificate does not fit the host, as ` (<explanation>)`; empty if the error contains none. */
function mismatchReason(error: unknown): string {
  const altNames = /altnames: (.*)$/.exec(textOf(error))?.[1];
  return altNames ? ` (${altNames.replace(/[:\s]+$/, '')})` : '';
}

/** Returns OpenSSL's reason for an error, without the error number, the source position and the prefix that kafkajs adds. */
function opensslReason(error: unknown): string {
  const text = textOf(error).replace(/^Connection error: /, '');
  return /:SSL routines:[^:]*:([^:]+)/.exec(text)?.[1] ?? text;
}
