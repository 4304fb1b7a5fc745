import { once } from 'node:events';
import { createServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { tlsError } from '../../src/core/tls-error.ts';
import { isRetryable } from '../../src/core/errors.ts';
import { authority, selfSigned } from '../support/certificates.ts';
import { serve } from '../support/http-server.ts';

const SERVER = {
  who: 'the server',
  address: 'ITS_URL',
  ca: 'ITS_CA_FILE',
  plainTextAdvice: 'begin ITS_URL with http://',
  unreachable: 'API_UNREACHABLE',
} as const;

const ours = authority('our authority');

/** Shakes hands as a client that trusts our authority, and gives the failure. */
async function failureAt(port: number, ca: string | undefined = ours.cert): Promise<unknown> {
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ...(ca && { ca }) });
  socket.write('GET / HTTP/1.1\r\n\r\n'); // in TLS 1.3 a client is refused after its handshake
  socket.resume();
  try {
    await once(socket, 'close'); // rejects with the error
  } catch (error) {
    return error;
  }
  throw new Error('it did not fail');
}

async function portOf(options: ServerOptions): Promise<number> {
  const server = createServer(options).listen(0, '127.0.0.1');
  server.on('tlsClientError', () => undefined);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const UNKNOWN =
  "the certificate of the server is not signed by a trusted authority: ITS_CA_FILE must name the file with its authority's certificate";

describe('tlsError', () => {
  it.each([
    ['its own', () => selfSigned()],
    ["another authority's", () => authority('another').issue()],
    ["one of another authority's of the same name", () => authority('our authority').issue()],
    [
      'one that comes with its authority',
      () => {
        const other = authority('another');
        const { cert, key } = other.issue();
        return { key, cert: cert + other.cert };
      },
    ],
  ])('a certificate that nobody vouches for ends it: %s', async (_, certificate) => {
    const error = tlsError(await failureAt(await portOf(certificate())), SERVER)!;
    expect([error.code, error.message, isRetryable(error)]).toEqual([
      'TLS_REFUSED',
      UNKNOWN,
      false,
    ]);
  });

  it('so does one that the well-known authorities do not vouch for', async () => {
    const error = tlsError(await failureAt(await portOf(ours.issue()), ''), SERVER)!;
    expect([error.code, error.message]).toEqual(['TLS_REFUSED', UNKNOWN]);
  });

  it("so does another host's, and it says whose it is", async () => {
    const port = await portOf(ours.issue({ hosts: ['a.example', 'b.example'] }));
    const error = tlsError(await failureAt(port), SERVER)!;
    expect(error.code).toBe('TLS_REFUSED');
    expect(error.message).toMatch(
      /^the certificate of the server is for another host: ITS_URL must name a host that is in it \(.*a\.example.*b\.example\)$/,
    );
  });

  it('so does a port that speaks no TLS', async () => {
    const server = await serve((_, response) => response.end());
    onTestFinished(() => server.close());
    const error = tlsError(await failureAt(Number(server.url.port)), SERVER)!;
    expect([error.code, error.message]).toEqual([
      'TLS_REFUSED',
      'the server does not use TLS at that port: begin ITS_URL with http://',
    ]);
  });

  it('so does one that wants a certificate of its clients', async () => {
    const port = await portOf({ ...ours.issue(), requestCert: true, ca: ours.cert });
    const error = tlsError(await failureAt(port), SERVER)!;
    expect(error.code).toBe('TLS_REFUSED');
    expect(error.message).toMatch(
      /^the server requires a client certificate, for which there is no setting/,
    );
  });

  it('and where settings have one, they are named', async () => {
    const server = { ...SERVER, clientCertificate: { cert: 'ITS_CERT_FILE', key: 'ITS_KEY_FILE' } };
    const port = await portOf({ ...ours.issue(), requestCert: true, ca: ours.cert });
    const error = tlsError(await failureAt(port), server)!;
    expect([error.code, isRetryable(error)]).toEqual(['TLS_REFUSED', false]);
    expect(error.message).toMatch(
      /^the server requires a client certificate: set ITS_CERT_FILE and ITS_KEY_FILE/,
    );
  });

  it.each([
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'requires a client certificate: set A and B'],
    [
      'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE',
      'requires a client certificate: set A and B; if they are set, set them to a certificate that the server trusts',
    ],
    // OpenSSL 3.5, of Node 22 and 24, writes SSL/TLS where OpenSSL 3.0 writes SSLV3.
    [
      'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE',
      'requires a client certificate: set A and B; if they are set, set them to a certificate that the server trusts',
    ],
    ...[
      ['SSL/TLS_ALERT_CERTIFICATE_EXPIRED', 'it has expired'],
      ['SSLV3_ALERT_CERTIFICATE_EXPIRED', 'it has expired'],
      ['SSLV3_ALERT_CERTIFICATE_REVOKED', 'it is revoked'],
      ['SSLV3_ALERT_CERTIFICATE_UNKNOWN', 'it is not trusted'],
      ['TLSV1_ALERT_UNKNOWN_CA', 'its authority is not trusted'],
    ].map(([code, why]) => [
      `ERR_SSL_${code}`,
      `refuses the client certificate in A (${why}): set A and B to another certificate and its key`,
    ]),
  ])('an alert about the client certificate: %s', (code, text) => {
    const server = { ...SERVER, clientCertificate: { cert: 'A', key: 'B' } };
    const error = tlsError(Object.assign(new Error('an alert'), { code }), server);
    expect(error).toMatchObject({ code: 'TLS_REFUSED', message: `the server ${text}` });
  });

  it.each([
    ['expired', { from: -10, to: -1 }, /has expired: it must be renewed there$/],
    ['early', { from: 1, to: 10 }, /is not valid yet: the clock of this machine/],
  ])('a certificate out of its time is waited for: %s', async (_, days, message) => {
    const error = tlsError(await failureAt(await portOf(ours.issue({ days }))), SERVER)!;
    expect([error.code, isRetryable(error)]).toEqual(['API_UNREACHABLE', true]);
    expect(error.message).toMatch(message);
    expect(error.context.tls).toMatch(/^CERT_/);
  });

  it('so is one that is not fit for a server', async () => {
    const port = await portOf(ours.issue({ purpose: 'clientAuth' }));
    const error = tlsError(await failureAt(port), SERVER)!;
    expect([error.code, error.context]).toEqual(['API_UNREACHABLE', { tls: 'INVALID_PURPOSE' }]);
    expect(error.message).toMatch(
      /^the certificate of the server is not accepted: \w+ certificate purpose$/,
    );
  });

  it.each(['CERT_REVOKED', 'CERT_REJECTED', 'PATH_LENGTH_EXCEEDED', 'UNSPECIFIED'])(
    'so is one that is wrong in another way: %s',
    (code) => {
      const failure = Object.assign(new Error('Connection error: it is wrong'), { code });
      const error = tlsError(failure, SERVER)!;
      expect([error.code, error.message, error.context]).toEqual([
        'API_UNREACHABLE',
        'the certificate of the server is not accepted: it is wrong',
        { tls: code },
      ]);
    },
  );

  it('other failures of the handshake are waited for, in words of their own', async () => {
    const port = await portOf({ ...ours.issue(), maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA' });
    const error = tlsError(await failureAt(port), SERVER)!;
    expect(error.code).toBe('API_UNREACHABLE');
    expect(error.message).toMatch(/^TLS with the server can't be set up: [a-z0-9 /]+$/);
  });

  it('what has nothing to do with TLS is none of its business', () => {
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    for (const error of [refused, new Error('x'), null, 'CERT_HAS_EXPIRED']) {
      expect(tlsError(error, SERVER)).toBeUndefined();
    }
  });
});
