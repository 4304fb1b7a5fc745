import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createPrivateKey } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { cachedJars, findJava } from '../../../src/devstack/jar-cache.ts';
import { startKafka } from '../../../src/devstack/kafka-server.ts';
import { Tethered } from '../../../src/devstack/tethered.ts';
import { startSandbox } from '../../../src/sandbox/index.ts';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { authority } from '../../support/certificates.ts';
import type { Authority, Certificate } from '../../support/certificates.ts';
import { AUDIENCE, CLIENT, ISSUER, startTokenEndpoint } from '../../support/token-endpoint.ts';
import type { TokenEndpoint } from '../../support/token-endpoint.ts';
import { serverVersions } from './server-versions.ts';
import type { Env } from './service.ts';

const java = await findJava(process.env);

/** Brokers with further listeners are there on Java alone. */
export const canBeManaged = java.found;

const READY_TIMEOUT_MS = 60_000;
const KEY_PASSWORD = 'key password-yG4';
/** Sessions of a login end with its token, and after this time, in ms. */
const MAX_SESSION_MS = 60_000;

/**
 * A Kafka as managed services run it: `MUTUAL` takes clients with a certificate alone, `OAUTH` takes tokens, which it checks with the
 * identity provider's keys.
 */
export interface ManagedKafka {
  /** The listener of the broker that needs no login. */
  readonly brokers: readonly string[];
  readonly identities: TokenEndpoint;
  /** Settings of a service with a certificate; by default one that the broker trusts. */
  readonly withCertificate: (certificate?: Certificate | null) => Env;
  /** Settings of a service with tokens. */
  readonly withTokens: (special?: Env) => Env;
  readonly trusted: Authority;
  readonly stop: () => Promise<void>;
}

export async function startManagedKafka(): Promise<ManagedKafka> {
  if (!java.found) throw new Error(java.reason);
  const trusted = authority('our authority');
  const server = trusted.issue();
  const identities = await startTokenEndpoint();
  const jars = await cachedJars(serverVersions());
  const tethered = await Tethered.start(join(tmpdir(), 'cellarstream-managed-'), process.env);
  const jvm = { java: java.command, tethered, readyTimeoutMs: READY_TIMEOUT_MS };
  const { nodes, listeners } = await startKafka(jars.kafka, jvm, {
    kafka: {
      listeners: { MUTUAL: 'SSL', OAUTH: 'SASL_PLAINTEXT' },
      // Kafka 4.0 and newer ask identity providers that are named here alone.
      javaOptions: [`-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=${identities.keysUrl}`],
      settings: {
        'connection.failed.authentication.delay.ms': '0',
        'listener.name.mutual.ssl.keystore.type': 'PEM',
        'listener.name.mutual.ssl.keystore.certificate.chain': server.cert,
        'listener.name.mutual.ssl.keystore.key': server.key,
        'listener.name.mutual.ssl.client.auth': 'required',
        'listener.name.mutual.ssl.truststore.type': 'PEM',
        'listener.name.mutual.ssl.truststore.certificates': trusted.cert,
        'listener.name.oauth.sasl.enabled.mechanisms': 'OAUTHBEARER',
        'listener.name.oauth.oauthbearer.sasl.jaas.config':
          'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;',
        'listener.name.oauth.oauthbearer.sasl.server.callback.handler.class':
          'org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler',
        'listener.name.oauth.oauthbearer.connections.max.reauth.ms': String(MAX_SESSION_MS),
        // The default of Kafka 4.1 checks neither signature nor audience.
        'sasl.oauthbearer.jwt.validator.class':
          'org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator',
        'sasl.oauthbearer.jwks.endpoint.url': identities.keysUrl,
        'sasl.oauthbearer.expected.audience': AUDIENCE,
        'sasl.oauthbearer.expected.issuer': ISSUER,
        'sasl.oauthbearer.clock.skew.seconds': '0',
      },
    },
  });
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-certificates-'));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const ca = file('ca.pem', trusted.cert); // written once, as commands of concurrent tests read it
  let certificates = 0;
  const withCertificate = (certificate: Certificate | null = trusted.issue()): Env => {
    const name = `client-${(certificates += 1)}`;
    return {
      KAFKA_BROKERS: listeners.MUTUAL!,
      KAFKA_SSL: 'true',
      KAFKA_SSL_CA_FILE: ca,
      ...(certificate && {
        KAFKA_SSL_CERT_FILE: file(`${name}.pem`, certificate.cert),
        KAFKA_SSL_KEY_FILE: file(`${name}.key`, encrypted(certificate.key)),
        KAFKA_SSL_KEY_PASSWORD: KEY_PASSWORD,
      }),
    };
  };
  return {
    brokers: nodes.map(({ address }) => address),
    identities,
    trusted,
    withCertificate,
    withTokens: (special = {}) => ({
      KAFKA_BROKERS: listeners.OAUTH!,
      KAFKA_SASL_MECHANISM: 'oauthbearer',
      KAFKA_OAUTH_TOKEN_URL: identities.url,
      KAFKA_OAUTH_CLIENT_ID: CLIENT.id,
      KAFKA_OAUTH_CLIENT_SECRET: CLIENT.secret,
      KAFKA_OAUTH_SCOPE: 'kafka',
      KAFKA_OAUTH_EXTENSIONS: 'logicalCluster=lkc-1,identityPoolId=pool-1',
      ...special,
    }),
    stop: async () => {
      await tethered.end();
      await identities.close();
      rmSync(folder, { recursive: true });
    },
  };
}

function encrypted(key: string): string {
  const options = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc' } as const;
  return createPrivateKey(key)
    .export({ ...options, passphrase: KEY_PASSWORD })
    .toString();
}

/** A sandbox with a few orders, and a quota that does not matter. */
export function startOrders(changesPerSecond = 0, orders = 20): Promise<Sandbox> {
  return startSandbox({
    records: { orders },
    quotaPerMinute: 10_000,
    loginQuotaPerMinute: 10_000,
    changesPerSecond,
  });
}

/** The settings of a service that reads orders, without those of Kafka. */
export function orderSettings(sandbox: Sandbox, prefix: string, state: string): Env {
  return {
    API_BASE_URL: sandbox.url,
    API_KEY: sandbox.apiKey,
    SCHEMA_REGISTRY_URL: inject('registryUrl'),
    RESOURCES: 'orders',
    TOPIC_PREFIX: prefix,
    TOPIC_PARTITIONS: '2',
    QUOTA_PER_MINUTE: '10000',
    LOGIN_QUOTA_PER_MINUTE: '10000',
    POLL_INTERVAL_MS: '200',
    DELETE_PROOF_MS: '0',
    STATE_DIR: state,
  };
}
