import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSandbox } from '../../../src/sandbox/index.ts';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { findJava } from '../../../src/devstack/jar-cache.ts';
import { startOnJava } from '../../../src/devstack/java-services.ts';
import type { JavaServices } from '../../../src/devstack/services.ts';
import { authority, selfSigned } from '../../support/certificates.ts';
import type { Certificate } from '../../support/certificates.ts';
import { frontOf } from '../../support/tls-front.ts';
import type { Front } from '../../support/tls-front.ts';
import { serverVersions } from './server-versions.ts';
import type { Env } from './service.ts';

const java = await findJava(process.env);

/** Brokers with further listeners are there on Java alone. */
export const canBeSecured = java.found;

export const SECRETS = {
  apiKey: 'api-key-qX7',
  plainPassword: 'plain password-kT3',
  scramPassword: 'scram password-zM9',
  registryPassword: 'registry password-wB5',
} as const;

/** Kinds of certificates that a server may come with. */
const KINDS = ['good', 'expired', 'early', 'elsewhere', 'selfSigned'] as const;
type Kind = (typeof KINDS)[number];

/** A Kafka, a registry and the API, each with and without what secures it. */
export interface Secured {
  readonly services: JavaServices;
  readonly sandbox: Sandbox;
  /** Files with certificates of authorities: ours, and one that has signed nothing here. */
  readonly ca: string;
  readonly otherCa: string;
  /** The registry's API behind TLS: `good` asks for a login. */
  readonly registry: Readonly<Record<Kind, string>>;
  readonly api: Readonly<Record<Kind, string>>;
  /** The tokens that were sent to the API through its fronts. */
  readonly tokens: ReadonlySet<string>;
  readonly stop: () => Promise<void>;
}

/**
 * Kafka's listeners: `TLS`; `LOGIN`, SCRAM without TLS; `BOTH`, with TLS and every mechanism; `MUTUAL`, which
 * wants certificates of its clients; `EXPIRED` and `ELSEWHERE`, whose own are out of order.
 */
export async function startSecured(): Promise<Secured> {
  if (!java.found) throw new Error(java.reason);
  const ours = authority('our authority');
  const certificates: Readonly<Record<Kind, Certificate>> = {
    good: ours.issue(),
    expired: ours.issue({ days: { from: -10, to: -1 } }),
    early: ours.issue({ days: { from: 1, to: 10 } }),
    elsewhere: ours.issue({ hosts: ['elsewhere.example'] }),
    selfSigned: selfSigned(),
  };
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-certificates-'));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const [services, sandbox] = await Promise.all([
    startOnJava(java.command, {
      ...serverVersions(),
      kafka: {
        listeners: {
          TLS: 'SSL',
          LOGIN: 'SASL_PLAINTEXT',
          BOTH: 'SASL_SSL',
          MUTUAL: 'SSL',
          EXPIRED: 'SSL',
          ELSEWHERE: 'SSL',
        },
        users: { alice: SECRETS.scramPassword },
        settings: {
          'connection.failed.authentication.delay.ms': '0',
          ...keys('TLS', certificates.good),
          ...keys('BOTH', certificates.good),
          ...keys('MUTUAL', certificates.good),
          ...keys('EXPIRED', certificates.expired),
          ...keys('ELSEWHERE', certificates.elsewhere),
          ...logins('LOGIN', ['SCRAM-SHA-256', 'SCRAM-SHA-512']),
          ...logins('BOTH', ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512']),
          'listener.name.mutual.ssl.client.auth': 'required',
          'listener.name.mutual.ssl.truststore.type': 'PEM',
          'listener.name.mutual.ssl.truststore.certificates': ours.cert,
        },
      },
    }),
    startSandbox({
      apiKey: SECRETS.apiKey,
      records: {
        orders: 20,
        customers: 20,
        'wine-clubs': 3,
        'wine-club-members': 20,
        inventory: 20,
        products: 20,
      },
      quotaPerMinute: 10_000,
      loginQuotaPerMinute: 10_000,
    }),
  ]);
  const fronts: Front[] = [];
  const tokens = new Set<string>();
  const before = async (origin: string, kind: Kind, login?: string): Promise<string> => {
    const front = await frontOf(origin, {
      certificate: certificates[kind],
      ...(login && { login }),
      onRequest: ({ headers: { authorization } }) => {
        if (authorization?.startsWith('Bearer ')) tokens.add(authorization.slice('Bearer '.length));
      },
    });
    fronts.push(front);
    return front.url;
  };
  const each = async (make: (kind: Kind) => Promise<string>) =>
    Object.fromEntries(
      await Promise.all(KINDS.map(async (kind) => [kind, await make(kind)] as const)),
    ) as Record<Kind, string>;
  const { origin, pathname } = new URL(services.registryUrl);
  const login = `bob:${SECRETS.registryPassword}`;
  return {
    services,
    sandbox,
    ca: file('ca.pem', ours.cert),
    otherCa: file('other-ca.pem', authority('another authority').cert),
    registry: await each(
      async (kind) => (await before(origin, kind, kind === 'good' ? login : undefined)) + pathname,
    ),
    api: await each((kind) => before(sandbox.url, kind)),
    tokens,
    stop: async () => {
      await Promise.all([...fronts.map((front) => front.close()), sandbox.close()]);
      await services.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** The settings of a service that reads orders, all of it in plain text. */
export function plainSettings({ services, sandbox }: Secured, prefix: string): Env {
  return {
    API_BASE_URL: sandbox.url,
    API_KEY: SECRETS.apiKey,
    KAFKA_BROKERS: services.brokers.join(),
    SCHEMA_REGISTRY_URL: services.registryUrl,
    RESOURCES: 'orders',
    TOPIC_PREFIX: prefix,
    QUOTA_PER_MINUTE: '10000',
    LOGIN_QUOTA_PER_MINUTE: '10000',
    HTTP_PORT: '0',
  };
}

/** TLS to one of Kafka's listeners. */
export function kafkaTls({ services, ca }: Secured, listener: string): Env {
  return {
    KAFKA_BROKERS: services.listeners[listener]!,
    KAFKA_SSL: 'true',
    KAFKA_SSL_CA_FILE: ca,
  };
}

/** A login to Kafka. */
export function kafkaLogin(mechanism: string, password: string, username = 'alice'): Env {
  return {
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_SASL_USERNAME: username,
    KAFKA_SASL_PASSWORD: password,
  };
}

export function registryTls({ registry, ca }: Secured, kind: Kind): Env {
  return { SCHEMA_REGISTRY_URL: registry[kind], SCHEMA_REGISTRY_CA_FILE: ca };
}

export function registryLogin(password: string = SECRETS.registryPassword): Env {
  return { SCHEMA_REGISTRY_USERNAME: 'bob', SCHEMA_REGISTRY_PASSWORD: password };
}

export function apiTls({ api, ca }: Secured, kind: Kind): Env {
  return { API_BASE_URL: api[kind], API_CA_FILE: ca };
}

/** A listener's own key and certificate. */
function keys(listener: string, { cert, key }: Certificate): Record<string, string> {
  const prefix = `listener.name.${listener.toLowerCase()}.ssl.keystore`;
  return {
    [`${prefix}.type`]: 'PEM',
    [`${prefix}.certificate.chain`]: cert,
    [`${prefix}.key`]: key,
  };
}

/** A listener's mechanisms. PLAIN's users are in its settings, SCRAM's were made when the folder was. */
function logins(listener: string, mechanisms: readonly string[]): Record<string, string> {
  const prefix = `listener.name.${listener.toLowerCase()}`;
  const modules = 'org.apache.kafka.common.security';
  const config = (mechanism: string) =>
    mechanism === 'PLAIN'
      ? `${modules}.plain.PlainLoginModule required user_alice="${SECRETS.plainPassword}";`
      : `${modules}.scram.ScramLoginModule required;`;
  return {
    [`${prefix}.sasl.enabled.mechanisms`]: mechanisms.join(),
    ...Object.fromEntries(
      mechanisms.map((mechanism) => [
        `${prefix}.${mechanism.toLowerCase()}.sasl.jaas.config`,
        config(mechanism),
      ]),
    ),
  };
}
