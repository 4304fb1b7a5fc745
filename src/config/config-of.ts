import { resolve } from 'node:path';
import type { Proxies } from '../core/proxies.ts';
import { parameterSetting } from '../description/checks.ts';
import { credentialsIn, CREDENTIALS } from '../description/credentials.ts';
import type { ApiDescription } from '../description/description.ts';
import { loginUrlOf } from '../streams/http/token-request.ts';
import type {
  ApiConfig,
  Config,
  KafkaConfig,
  KafkaLogin,
  RegistryAuth,
  RegistryConfig,
} from './config.ts';
import { mskRegion } from './kafka-problems.ts';
import { keyFieldsSetting } from './settings.ts';
import type { Settings } from './settings.ts';

/**
 * Converts validated settings into the configuration.
 *
 * @param description API description from which the settings' names and parsers were derived.
 * @param cwd Folder from which relative paths start.
 * @param sharedPrefix Prefix of the topics that all accounts of a fleet share. Default: the account's own prefix.
 */
export function configOf(
  set: Settings,
  description: ApiDescription,
  cwd: string,
  sharedPrefix = set.TOPIC_PREFIX,
): Config {
  const lists = description.lists.map(({ name }) => name);
  return {
    description,
    ...(set.MEASURED !== undefined && { measuredFile: resolve(cwd, set.MEASURED) }),
    api: apiOf(set, description),
    kafka: kafkaOf(set),
    registry: registryOf(set),
    account: set.ACCOUNT_NAME,
    topics: {
      prefix: set.TOPIC_PREFIX,
      sharedPrefix,
      partitions: set.TOPIC_PARTITIONS,
      replication: set.TOPIC_REPLICATION,
    },
    resources: set.RESOURCES,
    poll: {
      intervalMs: set.POLL_INTERVAL_MS,
      lookbackMs: set.LOOKBACK_MS,
      sweepIntervalMs: set.SWEEP_INTERVAL_MS,
      startFrom: set.START_FROM,
      pageSize: set.PAGE_SIZE,
      deleteLimitPercent: set.DELETE_LIMIT_PERCENT,
      deleteProofMs: set.DELETE_PROOF_MS,
    },
    certificateIntervalMs: set.CERTIFICATE_INTERVAL_MS,
    quota: {
      perMinute: set.QUOTA_PER_MINUTE,
      loginsPerMinute: set.LOGIN_QUOTA_PER_MINUTE,
      scope: set.QUOTA_SCOPE,
      firstReadPercent: set.INITIAL_SNAPSHOT_PERCENT,
    },
    pii: { drop: set.PII_DROP, mask: set.PII_MASK, hmac: set.PII_HMAC, hmacKey: set.PII_HMAC_KEY },
    volatileFields: set.VOLATILE_FIELDS,
    keyFormat: set.KEY_FORMAT,
    keyFields: described(set, lists, keyFieldsSetting),
    accountsDir: set.ACCOUNTS_DIR === undefined ? undefined : resolve(cwd, set.ACCOUNTS_DIR),
    instanceName: set.INSTANCE_NAME,
    stateDir: resolve(cwd, set.STATE_DIR),
    http: { host: set.HTTP_HOST, port: set.HTTP_PORT },
    logLevel: set.LOG_LEVEL,
  };
}

/**
 * Returns the values of settings whose names depend on the API description, such as `KEY_FIELDS_<LIST>` for each list.
 *
 * @param names Names of the lists or parameters that have a setting. They are the keys of the result.
 * @param settingOf Returns the name of the setting for one of `names`.
 */
function described<T>(
  set: Settings,
  names: readonly string[],
  settingOf: (name: string) => string,
): Readonly<Record<string, T>> {
  const values = set as unknown as Readonly<Record<string, T>>;
  return Object.fromEntries(names.map((name) => [name, values[settingOf(name)]!]));
}

function apiOf(set: Settings, description: ApiDescription): ApiConfig | undefined {
  const { API_BASE_URL: baseUrl, API_LOGIN_URL, API_CA_FILE: ca } = set;
  const { API_KEY_PATIENCE_MS: keyPatienceMs } = set;
  const { auth, parameters: names } = description;
  const used = credentialsIn(auth);
  const parameters = described<string>(set, names, parameterSetting);
  if (
    baseUrl === undefined ||
    used.some((name) => !set[CREDENTIALS[name]]) ||
    names.some((name) => parameters[name] === undefined)
  ) {
    return undefined;
  }
  const credentials = Object.fromEntries(used.map((name) => [name, set[CREDENTIALS[name]]!]));
  const loginUrl =
    API_LOGIN_URL ?? loginUrlOf(description, new URL(baseUrl), parameters)?.href ?? baseUrl;
  return {
    ...{ baseUrl, loginUrl, credentials, keyPatienceMs, ca },
    ...(names.length > 0 && { parameters }),
    ...proxiesOf(set),
  };
}

function kafkaOf(set: Settings): KafkaConfig | undefined {
  if (set.KAFKA_BROKERS === undefined) return undefined;
  const { KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key } = set;
  const client = cert && key ? { cert, key, password: set.KAFKA_SSL_KEY_PASSWORD } : undefined;
  return {
    brokers: set.KAFKA_BROKERS,
    ssl: set.KAFKA_SSL === 'true' && { ca: set.KAFKA_SSL_CA_FILE, client },
    sasl: kafkaLoginOf(set),
    ...proxiesOf(set),
  };
}

function kafkaLoginOf(set: Settings): KafkaLogin | undefined {
  const { KAFKA_SASL_MECHANISM: mechanism } = set;
  switch (mechanism) {
    case undefined:
      return undefined;
    case 'oauthbearer': {
      const { KAFKA_OAUTH_TOKEN_URL: tokenUrl, KAFKA_OAUTH_CLIENT_ID: clientId } = set;
      const { KAFKA_OAUTH_CLIENT_SECRET: clientSecret, KAFKA_OAUTH_SCOPE: scope } = set;
      if (!tokenUrl || !clientId || !clientSecret) return undefined;
      const credentials = { tokenUrl, clientId, clientSecret, scope };
      return { mechanism, credentials, extensions: set.KAFKA_OAUTH_EXTENSIONS ?? {} };
    }
    case 'aws-msk-iam': {
      const region = mskRegion(set.KAFKA_BROKERS ?? [], set.AWS_REGION);
      return region === undefined ? undefined : { mechanism, region };
    }
    default: {
      const { KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = set;
      return username && password ? { mechanism, username, password } : undefined;
    }
  }
}

function registryOf(set: Settings): RegistryConfig | undefined {
  const { SCHEMA_REGISTRY_URL: url, SCHEMA_REGISTRY_CA_FILE: ca } = set;
  if (url === undefined) return undefined;
  const { SCHEMA_REGISTRY_HEADERS: headers = {} } = set;
  const { SCHEMA_REGISTRY_CERT_FILE: cert, SCHEMA_REGISTRY_KEY_FILE: key } = set;
  const client = cert !== undefined && key ? { cert, key, password: undefined } : undefined;
  return { url, auth: registryAuthOf(set), headers, ca, client, ...proxiesOf(set) };
}

function registryAuthOf(set: Settings): RegistryAuth | undefined {
  const { SCHEMA_REGISTRY_USERNAME: username, SCHEMA_REGISTRY_PASSWORD: password } = set;
  if (username && password) return { kind: 'basic', username, password };
  if (set.SCHEMA_REGISTRY_TOKEN) return { kind: 'bearer', token: set.SCHEMA_REGISTRY_TOKEN };
  const { SCHEMA_REGISTRY_OAUTH_TOKEN_URL: tokenUrl } = set;
  const { SCHEMA_REGISTRY_OAUTH_CLIENT_ID: clientId } = set;
  const { SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET: clientSecret } = set;
  if (!tokenUrl || !clientId || !clientSecret) return undefined;
  const scope = set.SCHEMA_REGISTRY_OAUTH_SCOPE;
  return { kind: 'oauth', credentials: { tokenUrl, clientId, clientSecret, scope } };
}

function proxiesOf(set: Settings): { readonly proxies?: Proxies } {
  const { HTTP_PROXY: http, HTTPS_PROXY: https, NO_PROXY: noProxy } = set;
  return http || https ? { proxies: { http, https, noProxy } } : {};
}
