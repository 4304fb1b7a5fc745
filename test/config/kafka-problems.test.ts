import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mskRegion } from '../../src/config/kafka-problems.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { authority } from '../support/certificates.ts';

const OURS = authority('our authority');
const GOOD = OURS.issue();
const encrypted = createPrivateKey(GOOD.key)
  .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'open' })
  .toString();
/** A wrong password that OpenSSL recognizes as one: some seem to decrypt the key, and the result is no key. */
const recognizedPassword = ['a', 'b', 'c', 'd', 'e', 'f'].find((passphrase) => {
  try {
    createPrivateKey({ key: encrypted, passphrase });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_OSSL_BAD_DECRYPT';
  }
  return false;
})!;

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'kafka-problems-'));
  const files = {
    'good.pem': GOOD.cert,
    'good.key': GOOD.key,
    'encrypted.key': encrypted,
    'other.key': OURS.issue().key,
    'expired.pem': OURS.issue({ days: { from: -10, to: -1 } }).cert,
    'early.pem': OURS.issue({ days: { from: 1, to: 2 } }).cert,
    'undecryptable.key':
      '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n',
    'damaged.key': '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n',
    'store.p12': '\u0000\u0001 no PEM',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
});
afterAll(() => rmSync(cwd, { recursive: true }));

type Env = Readonly<Record<string, string>>;
const load = (env: Env) => loadConfig({ env: { KAFKA_BROKERS: 'b:1', ...env }, cwd });
/** Lines about settings that are wrong, sorted. */
function wrong(env: Env): string[] {
  try {
    load(env);
    return [];
  } catch (error) {
    const [, ...lines] = (error as Error).message.split('\n');
    return lines.map((line) => line.replace(/^- /, '')).sort();
  }
}

describe('a client certificate', () => {
  const certified = (env: Env = {}): Env => ({
    KAFKA_SSL: 'true',
    KAFKA_SSL_CERT_FILE: 'good.pem',
    KAFKA_SSL_KEY_FILE: 'good.key',
    ...env,
  });

  it('is read with its key, encrypted or not', () => {
    const { kafka } = load(certified());
    expect(kafka?.ssl).toMatchObject({ client: { cert: GOOD.cert, password: undefined } });
    const key = { KAFKA_SSL_KEY_FILE: 'encrypted.key', KAFKA_SSL_KEY_PASSWORD: 'open' };
    expect(wrong(certified(key))).toEqual([]);
  });

  it.each<[string, Env, string]>([
    ['no TLS', certified({ KAFKA_SSL: 'false' }), 'KAFKA_SSL_CERT_FILE needs KAFKA_SSL=true'],
    [
      'no key',
      { KAFKA_SSL: 'true', KAFKA_SSL_CERT_FILE: 'good.pem' },
      'KAFKA_SSL_CERT_FILE needs KAFKA_SSL_KEY_FILE: it is not set',
    ],
    [
      'a key alone',
      { KAFKA_SSL: 'true', KAFKA_SSL_KEY_FILE: 'good.key' },
      'KAFKA_SSL_KEY_FILE needs KAFKA_SSL_CERT_FILE: it is not set',
    ],
    [
      'a password alone',
      { KAFKA_SSL_KEY_PASSWORD: 'open' },
      'KAFKA_SSL_KEY_PASSWORD needs KAFKA_SSL_KEY_FILE: it is not set',
    ],
    [
      "another certificate's key",
      certified({ KAFKA_SSL_KEY_FILE: 'other.key' }),
      'KAFKA_SSL_KEY_FILE is not the key of the first certificate in KAFKA_SSL_CERT_FILE: the two must be a pair',
    ],
    [
      'an encrypted key without its password',
      certified({ KAFKA_SSL_KEY_FILE: 'encrypted.key' }),
      'KAFKA_SSL_KEY_FILE is encrypted: set KAFKA_SSL_KEY_PASSWORD',
    ],
    [
      'a wrong password',
      certified({
        KAFKA_SSL_KEY_FILE: 'encrypted.key',
        KAFKA_SSL_KEY_PASSWORD: recognizedPassword,
      }),
      'KAFKA_SSL_KEY_PASSWORD is not the password of KAFKA_SSL_KEY_FILE',
    ],
    [
      'a password with which the key is no key',
      certified({ KAFKA_SSL_KEY_FILE: 'undecryptable.key', KAFKA_SSL_KEY_PASSWORD: 'open' }),
      "KAFKA_SSL_KEY_FILE can't be read with KAFKA_SSL_KEY_PASSWORD (ERR_OSSL_UNSUPPORTED): check the password; if it is right, convert the key with openssl pkey -in FILE",
    ],
    [
      'a damaged key',
      certified({ KAFKA_SSL_KEY_FILE: 'damaged.key' }),
      'KAFKA_SSL_KEY_FILE has no private key that Node can read (ERR_OSSL_UNSUPPORTED): convert it with openssl pkey -in FILE',
    ],
    [
      'a key store',
      certified({ KAFKA_SSL_KEY_FILE: 'store.p12' }),
      'KAFKA_SSL_KEY_FILE must name a PEM file with a private key (to extract it from a PKCS #12 file: openssl pkcs12 -in FILE -nocerts)',
    ],
    [
      'no such file',
      certified({ KAFKA_SSL_KEY_FILE: 'none' }),
      "KAFKA_SSL_KEY_FILE can't be read (ENOENT): check the path and its permissions",
    ],
  ])('%s', (_, env, line) => {
    expect(wrong(env)).toContain(line);
  });

  it.each([
    ['expired.pem', /^KAFKA_SSL_CERT_FILE has expired on \d{4}-\d\d-\d\d: it must be renewed$/],
    ['early.pem', /^KAFKA_SSL_CERT_FILE is not valid before \d{4}-\d\d-\d\d: check the clock/],
  ])('out of its time: %s', (file, line) => {
    const lines = wrong(certified({ KAFKA_SSL_CERT_FILE: file }));
    expect(lines).toContainEqual(expect.stringMatching(line));
  });
});

describe('a login', () => {
  const tokens: Env = {
    KAFKA_SASL_MECHANISM: 'OAuthBearer',
    KAFKA_OAUTH_TOKEN_URL: 'https://idp.example/token?policy=one',
    KAFKA_OAUTH_CLIENT_ID: 'id',
    KAFKA_OAUTH_CLIENT_SECRET: 'secret',
  };

  it('with tokens', () => {
    const extensions = 'logicalCluster=lkc-1, identityPoolId=pool=2';
    expect(load({ ...tokens, KAFKA_OAUTH_EXTENSIONS: extensions }).kafka?.sasl).toMatchObject({
      mechanism: 'oauthbearer',
      credentials: { tokenUrl: tokens.KAFKA_OAUTH_TOKEN_URL, clientId: 'id', scope: undefined },
      extensions: { logicalCluster: 'lkc-1', identityPoolId: 'pool=2' },
    });
  });

  it.each<[string, Env, readonly string[]]>([
    [
      'tokens, without the settings for them',
      { KAFKA_SASL_MECHANISM: 'oauthbearer' },
      [
        'KAFKA_SASL_MECHANISM needs KAFKA_OAUTH_TOKEN_URL: it is not set',
        'KAFKA_SASL_MECHANISM needs KAFKA_OAUTH_CLIENT_ID: it is not set',
        'KAFKA_SASL_MECHANISM needs KAFKA_OAUTH_CLIENT_SECRET: neither it nor KAFKA_OAUTH_CLIENT_SECRET_FILE is set',
      ],
    ],
    [
      'tokens, with a password',
      { ...tokens, KAFKA_SASL_PASSWORD: 'pass' },
      ['KAFKA_SASL_PASSWORD is not used by KAFKA_SASL_MECHANISM=oauthbearer: unset one of them'],
    ],
    [
      'no mechanism',
      { KAFKA_OAUTH_SCOPE: 'kafka' },
      ['KAFKA_OAUTH_SCOPE needs KAFKA_SASL_MECHANISM: it is not set'],
    ],
    [
      'MSK without TLS and region',
      { KAFKA_SASL_MECHANISM: 'aws-msk-iam' },
      [
        'KAFKA_SASL_MECHANISM aws-msk-iam needs AWS_REGION: it is not set, and the names in KAFKA_BROKERS have no region',
        'KAFKA_SASL_MECHANISM aws-msk-iam needs KAFKA_SSL=true',
      ],
    ],
  ])('%s', (_, env, lines) => {
    expect(wrong(env)).toEqual([...lines].sort());
  });

  it.each(['auth=x', 'no-value', 'a-b=c', '=x'])('refuses the extension %s', (extension) => {
    expect(wrong({ ...tokens, KAFKA_OAUTH_EXTENSIONS: extension })).toEqual([
      expect.stringMatching(/^KAFKA_OAUTH_EXTENSIONS must be name=value/),
    ]);
  });

  it.each([
    ['b-1.one.abc.c2.kafka.eu-west-1.amazonaws.com:9098', undefined, 'eu-west-1'],
    ['boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098', 'eu-west-1', 'us-east-1'],
    ['private.example:9098', 'eu-west-1', 'eu-west-1'],
    ['private.example:9098', undefined, undefined],
  ])('the region of %s, with AWS_REGION %s, is %s', (broker, ofEnv, region) => {
    expect(mskRegion([broker], ofEnv)).toBe(region);
  });
});
