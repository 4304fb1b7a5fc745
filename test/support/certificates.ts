import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

/** A certificate and its private key, in PEM (PKCS #8): what `tls.createServer` and Kafka take. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateOptions {
  /** Names and IPv4 addresses of the server. Default `localhost` and `127.0.0.1`. */
  readonly hosts?: readonly string[];
  /** Days from now. Default from yesterday to tomorrow. */
  readonly days?: { readonly from: number; readonly to: number };
  /** What it alone may be used for. Default whatever. */
  readonly purpose?: 'clientAuth';
}

/** Somebody who signs certificates. */
export interface Authority {
  /** Its own certificate, in PEM: what clients are told to trust. */
  readonly cert: string;
  readonly issue: (options?: CertificateOptions) => Certificate;
}

/** A new authority, trusted by nobody yet. */
export function authority(name: string): Authority {
  const own = newKeys();
  const isAuthority = extension(OID.basicConstraints, sequence(TRUE), 'critical');
  return {
    cert: certificate({ name, keys: own, extensions: [isAuthority] }, { name, keys: own }),
    issue: (options = {}) => {
      const subject = server(options);
      return withKey(certificate(subject, { name, keys: own }), subject.keys);
    },
  };
}

/** A server's certificate that nobody has signed but itself. */
export function selfSigned(options: CertificateOptions = {}): Certificate {
  const subject = server(options);
  return withKey(certificate(subject, subject), subject.keys);
}

interface Keys {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

interface Signer {
  readonly name: string;
  readonly keys: Keys;
}

interface Subject extends Signer {
  readonly extensions: readonly Buffer[];
  readonly days?: CertificateOptions['days'];
}

function server(options: CertificateOptions): Subject {
  const { hosts = ['localhost', '127.0.0.1'], days, purpose } = options;
  const names = extension(OID.subjectAltName, sequence(...hosts.map(altName)));
  const purposes = purpose ? [extension(OID.extKeyUsage, sequence(oid(OID[purpose])))] : [];
  const extensions = [names, ...purposes];
  return { name: 'a server', keys: newKeys(), extensions, ...(days && { days }) };
}

function withKey(cert: string, { privateKey }: Keys): Certificate {
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

const DAY_MS = 86_400_000;

function newKeys(): Keys {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** X.509 version 3 (RFC 5280), signed with ECDSA and SHA-256. */
function certificate(subject: Subject, signer: Signer): string {
  const { name, keys, extensions, days = { from: -1, to: 1 } } = subject;
  const algorithm = sequence(oid(OID.ecdsaWithSha256));
  const serial = Buffer.concat([Buffer.of(1), randomBytes(15)]); // positive
  const content = sequence(
    der(0xa0, der(INTEGER, Buffer.of(2))), // version 3
    der(INTEGER, serial),
    algorithm,
    commonName(signer.name),
    sequence(...[days.from, days.to].map((day) => time(new Date(Date.now() + day * DAY_MS)))),
    commonName(name),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const signed = sequence(
    content,
    algorithm,
    bits(sign('sha256', content, signer.keys.privateKey)),
  );
  const lines = signed.toString('base64').match(/.{1,64}/g)!;
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

const OID = {
  commonName: [2, 5, 4, 3],
  subjectAltName: [2, 5, 29, 17],
  basicConstraints: [2, 5, 29, 19],
  extKeyUsage: [2, 5, 29, 37],
  clientAuth: [1, 3, 6, 1, 5, 5, 7, 3, 2],
  ecdsaWithSha256: [1, 2, 840, 10_045, 4, 3, 2],
} as const;

// The few of DER's types that a certificate needs: a tag, a length, a content.

const INTEGER = 0x02;

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...head), content]);
}

const TRUE = der(0x01, Buffer.of(0xff));

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts);
}

function bits(bytes: Buffer): Buffer {
  return der(0x03, Buffer.of(0), bytes);
}

function oid([first = 0, second = 0, ...rest]: readonly number[]): Buffer {
  const sevens = (value: number): number[] =>
    value < 0x80 ? [value] : [...sevens(value >> 7).map((byte) => byte | 0x80), value & 0x7f];
  return der(0x06, Buffer.of(first * 40 + second, ...rest.flatMap(sevens)));
}

function commonName(name: string): Buffer {
  return sequence(der(0x31, sequence(oid(OID.commonName), der(0x0c, Buffer.from(name)))));
}

/** UTCTime, in seconds: two digits for the year. */
function time(at: Date): Buffer {
  const digits = at.toISOString().replace(/\..*|[-:T]/g, '');
  return der(0x17, Buffer.from(`${digits.slice(2)}Z`));
}

function extension(id: readonly number[], value: Buffer, critical?: 'critical'): Buffer {
  return sequence(oid(id), ...(critical ? [TRUE] : []), der(0x04, value));
}

/** A name, or an IPv4 address. */
function altName(host: string): Buffer {
  const address = /^\d+\.\d+\.\d+\.\d+$/.test(host);
  return address
    ? der(0x87, Buffer.from(host.split('.').map(Number)))
    : der(0x82, Buffer.from(host));
}
