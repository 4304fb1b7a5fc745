import { z } from 'zod';
import { RESOURCES } from '../resources/resources.ts';
import type { Resource } from '../resources/resources.ts';
import {
  brokers,
  certificates,
  fieldNames,
  fields,
  headers,
  hmacKey,
  hostName,
  httpAddress,
  integer,
  isoInstant,
  milliseconds,
  name,
  oneOf,
  percent,
  pointers,
  privateKey,
  proxy,
  resources,
  saslExtensions,
  secret,
  text,
  withoutSlash,
} from './setting-parsers.ts';

/** Log levels, from the most verbose to none. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
/** A log level, as a threshold: log messages below this level are not written. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A group of settings that a command may require. */
export type Need = 'api' | 'kafka' | 'registry';

/** Properties of a setting beside its parser and default. */
export interface AboutSetting {
  /** Meaning of the setting, in Markdown. docs/settings.md and .env.example contain this text, followed by the accepted range. */
  readonly text: string;
  /**
   * Noun for the secret, such as `password`; only for settings that hold a secret. `<name>_FILE` may name a file that contains the secret.
   */
  readonly secret?: string;
  /** Whether an account's file may contain this setting. All other settings belong to the instance. */
  readonly isPerAccount?: boolean;
  /** Only for required settings: the group that requires this setting, and the part of the error message that explains a missing value. */
  readonly needed?: { readonly in: Need; readonly advice: string };
}

const ABOUT = z.registry<AboutSetting>();

// The settings, by their sections in docs/settings.md. After a change `npm run docs` updates that page and .env.example.

const API = {
  API_BASE_URL: httpAddress()
    .transform((url) => withoutSlash(withoutSlash(url).replace(/\/v1$/, '')))
    .optional()
    .register(ABOUT, {
      text: "Address of the API, with or without a trailing `/v1` (the staging server's address ends in it). Lists are requested at `<base>/v1/<resource>`.",
      isPerAccount: true,
      needed: { in: 'api', advice: 'it is the address of the API, such as https://api.example' },
    }),
  API_KEY: secret.optional().register(ABOUT, {
    text: 'The API key. The account owner creates it in the admin settings, on the API access page.',
    secret: 'API key',
    isPerAccount: true,
    needed: {
      in: 'api',
      advice: 'the account owner makes a key in the admin settings, on the API access page',
    },
  }),
  API_KEY_PATIENCE_MS: milliseconds(0)
    .default(600_000)
    .register(ABOUT, {
      text:
        'How long the login may refuse a key that has worked in this process before `run` ends: a gateway in trouble refuses valid keys too. ' +
        'A key that never worked ends `run` at once.',
      isPerAccount: true,
    }),
  API_LOGIN_URL: httpAddress().optional().register(ABOUT, {
    text: 'Address of the login, if it is not `<base>/v1/auth/public/login`.',
    isPerAccount: true,
  }),
  API_CA_FILE: certificates.optional().register(ABOUT, {
    text: "File with the certificates (PEM) of the authorities to trust for the API, instead of Node's own. Requires an address with `https://`.",
    isPerAccount: true,
  }),
  ACCOUNT_NAME: name(100, /^(?!\.+$)[\w.-]+$/)
    .default('default')
    .register(ABOUT, {
      text:
        'Name of the account that the key belongs to. It is in `source.name` of every event, in cursors and in transactional ids. ' +
        "Each account needs a `TOPIC_PREFIX` of its own: the keys of messages don't contain the account, and `run` refuses to share a prefix. " +
        "Don't change it later: another name is another account, which starts with an initial snapshot.",
    }),
};

const KAFKA = {
  KAFKA_BROKERS: brokers.optional().register(ABOUT, {
    text: 'Brokers to connect to first, as `host:port`, separated by commas.',
    needed: { in: 'kafka', advice: 'it is host:port of one or more brokers' },
  }),
  KAFKA_SSL: oneOf('true', 'false').default('false').register(ABOUT, {
    text: '`true`: connect with TLS.',
  }),
  KAFKA_SSL_CA_FILE: certificates.optional().register(ABOUT, {
    text:
      "File with the certificates (PEM) of the authorities to trust for the brokers, instead of Node's own. " +
      "For the token endpoint they are trusted in addition to Node's own. Requires `KAFKA_SSL=true`.",
  }),
  KAFKA_SSL_CERT_FILE: certificates.optional().register(ABOUT, {
    text: "File with the client's certificate (PEM), followed by its intermediate certificates. Requires `KAFKA_SSL_KEY_FILE` and `KAFKA_SSL=true`.",
  }),
  KAFKA_SSL_KEY_FILE: privateKey.optional().register(ABOUT, {
    text: 'File with the private key of that certificate (PEM).',
  }),
  KAFKA_SSL_KEY_PASSWORD: secret.optional().register(ABOUT, {
    text: 'Password of the private key, if it is encrypted.',
    secret: 'password',
  }),
  KAFKA_SASL_MECHANISM: oneOf(
    'plain',
    'scram-sha-256',
    'scram-sha-512',
    'oauthbearer',
    'aws-msk-iam',
  )
    .optional()
    .register(ABOUT, {
      text:
        'How to log in to the brokers; unset: no login. `plain`, `scram-sha-256` and `scram-sha-512` require ' +
        '`KAFKA_SASL_USERNAME` and `KAFKA_SASL_PASSWORD`; `oauthbearer` requires the settings that begin with `KAFKA_OAUTH_`; ' +
        '`aws-msk-iam` requires `KAFKA_SSL=true`, AWS credentials, and the package `aws-msk-iam-sasl-signer-js` installed beside this one. ' +
        'Examples: [security.md](security.md#managed-clusters).',
    }),
  KAFKA_SASL_USERNAME: text.optional().register(ABOUT, { text: 'User name at the brokers.' }),
  KAFKA_SASL_PASSWORD: secret.optional().register(ABOUT, {
    text: 'Password at the brokers.',
    secret: 'password',
  }),
  KAFKA_OAUTH_TOKEN_URL: httpAddress({ isQueryAllowed: true })
    .optional()
    .register(ABOUT, {
      text:
        "Address of the identity provider's token endpoint, which issues access tokens for the brokers (OAuth 2, client credentials). " +
        'With `http://` the client secret crosses the network in clear text, and a warning says so.',
    }),
  KAFKA_OAUTH_CLIENT_ID: text.optional().register(ABOUT, {
    text: 'Id of the client at the identity provider.',
  }),
  KAFKA_OAUTH_CLIENT_SECRET: secret.optional().register(ABOUT, {
    text: 'Secret of the client.',
    secret: 'client secret',
  }),
  KAFKA_OAUTH_SCOPE: text.optional().register(ABOUT, {
    text: 'Scopes to request, with spaces between; unset: none.',
  }),
  KAFKA_OAUTH_EXTENSIONS: saslExtensions.optional().register(ABOUT, {
    text: 'SASL extensions that are sent with each token, as `name=value` separated by commas, such as `logicalCluster=lkc-1,identityPoolId=pool-2`.',
  }),
  AWS_REGION: text.optional().register(ABOUT, {
    text: "Region of the cluster for `aws-msk-iam`, if the host names in `KAFKA_BROKERS` don't contain it. It is AWS's own variable.",
  }),
};

const SCHEMA_REGISTRY = {
  SCHEMA_REGISTRY_URL: httpAddress()
    .transform(withoutSlash)
    .optional()
    .register(ABOUT, {
      text: "Address of a registry with Confluent's API, including the path (Apicurio's ends in `/apis/ccompat/v7`).",
      needed: {
        in: 'registry',
        advice: 'it is the address of the schema registry, such as http://127.0.0.1:8081',
      },
    }),
  SCHEMA_REGISTRY_USERNAME: text.optional().register(ABOUT, {
    text: 'User name at the registry (HTTP Basic); unset: none is sent. At Confluent Cloud it is an API key that was created for its Schema Registry.',
  }),
  SCHEMA_REGISTRY_PASSWORD: secret.optional().register(ABOUT, {
    text: 'Password at the registry.',
    secret: 'password',
  }),
  SCHEMA_REGISTRY_TOKEN: secret.optional().register(ABOUT, {
    text: 'Bearer token for the registry, instead of a user name and a password.',
    secret: 'token',
  }),
  SCHEMA_REGISTRY_OAUTH_TOKEN_URL: httpAddress({ isQueryAllowed: true })
    .optional()
    .register(ABOUT, {
      text:
        'Address of the token endpoint that issues bearer tokens for the registry (OAuth 2, client credentials). ' +
        'With `http://` the client secret crosses the network in clear text, and a warning says so.',
    }),
  SCHEMA_REGISTRY_OAUTH_CLIENT_ID: text.optional().register(ABOUT, {
    text: 'Id of the client at that endpoint.',
  }),
  SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET: secret.optional().register(ABOUT, {
    text: 'Secret of the client at that endpoint.',
    secret: 'client secret',
  }),
  SCHEMA_REGISTRY_OAUTH_SCOPE: text.optional().register(ABOUT, {
    text: 'Scopes to request, with spaces between; unset: none.',
  }),
  SCHEMA_REGISTRY_HEADERS: headers.optional().register(ABOUT, {
    text: 'Additional headers of each request to the registry: `Name: value`, with commas or line ends between.',
    secret: 'headers',
  }),
  SCHEMA_REGISTRY_CA_FILE: certificates.optional().register(ABOUT, {
    text:
      "File with the certificates (PEM) of the authorities to trust for the registry, instead of Node's own. " +
      "For its token endpoint they are trusted in addition to Node's own. Requires an address with `https://`.",
  }),
  SCHEMA_REGISTRY_CERT_FILE: certificates.optional().register(ABOUT, {
    text: 'File with a client certificate (PEM), followed by its intermediate certificates. Requires `SCHEMA_REGISTRY_KEY_FILE` and an address with `https://`.',
  }),
  SCHEMA_REGISTRY_KEY_FILE: privateKey.optional().register(ABOUT, {
    text: 'File with the private key of that certificate (PEM, not encrypted).',
  }),
};

const PROXIES = {
  HTTP_PROXY: proxy.optional().register(ABOUT, {
    text:
      'Address of the proxy for `http://` addresses, such as `http://proxy.example:3128` or `http://user:password@proxy.example:3128` ' +
      '(special characters as `%XX`); also for `https://` addresses while `HTTPS_PROXY` is unset.',
    secret: 'address of the proxy',
  }),
  HTTPS_PROXY: proxy.optional().register(ABOUT, {
    text: 'Address of the proxy for `https://` addresses. TLS is negotiated with the server itself, through the proxy.',
    secret: 'address of the proxy',
  }),
  NO_PROXY: text.optional().register(ABOUT, {
    text:
      'Hosts that are reached without a proxy, with commas or spaces between. `example.com` includes all its subdomains, ' +
      '`host:port` is one port; IP addresses, ranges such as `10.0.0.0/8`, and `*` for all hosts are allowed too.',
  }),
};

const TOPICS = {
  TOPIC_PREFIX: name(200).default('wine').register(ABOUT, {
    text: "Prefix of the topics' names, as in `wine.orders`.",
    isPerAccount: true,
  }),
  TOPIC_PARTITIONS: integer(1, 10_000).default(6).register(ABOUT, {
    text: 'Number of partitions of the topics that `run` creates. Existing topics keep theirs.',
  }),
  TOPIC_REPLICATION: integer(1, 100).optional().register(ABOUT, {
    text: 'Replication factor of the topics that `run` creates; unset: 3, or the number of brokers if that is smaller.',
  }),
};

const keyFieldsOf = (record: string) =>
  fieldNames.optional().register(ABOUT, {
    text: `Fields that make up the key of ${record}; see \`KEY_FIELDS_CUSTOMERS\`.`,
    isPerAccount: true,
  });

const READING = {
  RESOURCES: resources.default([...RESOURCES]).register(ABOUT, {
    text: 'Lists to read, separated by commas; see [resources.md](resources.md).',
    isPerAccount: true,
  }),
  POLL_INTERVAL_MS: milliseconds(100)
    .optional()
    .register(ABOUT, {
      text:
        'Time from one poll of a list to the next; unset: as often as the quota allows. ' +
        'For lists without dates: time from one sweep to the next. The lists of an account are not polled all at once: ' +
        'between its first and its second poll each list waits for a different part of this time.',
      isPerAccount: true,
    }),
  LOOKBACK_MS: milliseconds(0)
    .default(60_000)
    .register(ABOUT, {
      text:
        'A record that becomes visible up to this long after its `updated_at` is still found, at most this long after it became visible. ' +
        'Once in this time a poll looks back that far; the other polls look back ten seconds.',
      isPerAccount: true,
    }),
  SWEEP_INTERVAL_MS: milliseconds(100)
    .default(86_400_000)
    .register(ABOUT, {
      text:
        'Time from the start of one sweep of a list with dates to the start of the next; the default is a day. ' +
        'A sweep reads the whole list and finds deletions. Lists without dates are always read by sweeps.',
      isPerAccount: true,
    }),
  START_FROM: isoInstant.optional().register(ABOUT, {
    text:
      'ISO 8601 date, or time with its zone (`2025-01-31`, `2025-01-31T08:00Z`). In lists with dates, the initial snapshot reads ' +
      'only records that were modified at that time or later; unset: all.',
    isPerAccount: true,
  }),
  PAGE_SIZE: integer(21, 1_000, ' (pages overlap)').default(1_000).register(ABOUT, {
    text: 'Number of records per page.',
    isPerAccount: true,
  }),
  DELETE_LIMIT_PERCENT: percent.default(5).register(ABOUT, {
    text:
      "When more than this share of a list's records (and more than 20), or more than a third of them (and more than 2), " +
      'go missing between two full scans, no deletion is published, and an error is logged. 100 publishes all deletions.',
    isPerAccount: true,
  }),
  DELETE_PROOF_MS: milliseconds(0, 86_400_000)
    .default(60_000)
    .register(ABOUT, {
      text:
        'How long a record has to stay missing before its deletion is published: a list that is wrong for a shorter time deletes nothing. ' +
        'See [resources.md](resources.md#deletions).',
      isPerAccount: true,
    }),
  CERTIFICATE_INTERVAL_MS: milliseconds(100).default(60_000).register(ABOUT, {
    text: 'Shortest time from one [certificate](certificates.md) of a list to the next.',
  }),
  KEY_FORMAT: oneOf('text', 'avro')
    .default('text')
    .register(ABOUT, {
      text:
        'How keys are encoded in the topics of records and status changes: `text`, or `avro`, an Avro record with a string for each ' +
        'key field under the subject `<topic>-key`, which [sinks of Debezium](consumers.md#from-kafka-connect) require. ' +
        "Either way the text of the key determines the partition. Can't be changed once events are published. " +
        'Set `avro` only when all instances have a version that knows this setting: an older one misreads such keys.',
      isPerAccount: true,
    }),
  KEY_FIELDS_ORDERS: fieldNames.optional().register(ABOUT, {
    text: 'Fields that make up the key of an order. Only `order_number` is allowed, which is also the default.',
    isPerAccount: true,
  }),
  KEY_FIELDS_CUSTOMERS: fieldNames.optional().register(ABOUT, {
    text:
      'Fields that make up the key of a customer, separated by commas; unset: chosen from the first page, see ' +
      "[resources.md](resources.md). Can't be changed once events are published.",
    isPerAccount: true,
  }),
  KEY_FIELDS_INVENTORY: keyFieldsOf('an inventory item'),
  KEY_FIELDS_WINE_CLUBS: keyFieldsOf('a wine club'),
  KEY_FIELDS_WINE_CLUB_MEMBERS: keyFieldsOf('a wine-club member'),
  KEY_FIELDS_PRODUCTS: keyFieldsOf('a product'),
  VOLATILE_FIELDS: pointers.default([]).register(ABOUT, {
    text:
      'Fields that cause no event when only they change, as `products:/image_url` or `products:/images/url` (JSON Pointers without ' +
      'array indexes: an array on the path means each of its elements), separated by commas. ' +
      'See [resources.md](resources.md#fields-that-differ-in-every-answer).',
    isPerAccount: true,
  }),
};

const QUOTA = {
  QUOTA_PER_MINUTE: integer(1, 1_000_000).default(100).register(ABOUT, {
    text: 'Number of list requests that the API allows in any 60 seconds.',
    isPerAccount: true,
  }),
  LOGIN_QUOTA_PER_MINUTE: integer(1, 1_000_000).default(10).register(ABOUT, {
    text: 'Number of logins that the API allows in any 60 seconds.',
    isPerAccount: true,
  }),
  QUOTA_SCOPE: oneOf('endpoint', 'key').default('endpoint').register(ABOUT, {
    text: 'How the API counts list requests: `endpoint`, for each list separately; `key`, for all lists of an API key together.',
    isPerAccount: true,
  }),
  INITIAL_SNAPSHOT_PERCENT: integer(1, 95)
    .default(73)
    .register(ABOUT, {
      text:
        'Share of the quota for the initial snapshot of a list with dates. Polls have the rest meanwhile, and the snapshot also gets ' +
        'what they leave unused: with 73 there is a poll every 2.2 seconds. A lower value publishes changes sooner, a higher value ends the snapshot sooner.',
      isPerAccount: true,
    }),
};

const PERSONAL_FIELDS = {
  PII_DROP: fields.default([]).register(ABOUT, {
    text:
      'Fields to leave out before anything is published or stored, as `orders.email` or `orders.tender_info.last_four` ' +
      '(the path passes through arrays, without indexes), separated by commas. A field may be in only one of these three settings.',
    isPerAccount: true,
  }),
  PII_MASK: fields.default([]).register(ABOUT, {
    text: 'Fields whose value is replaced by `***`. In orders, only text fields.',
    isPerAccount: true,
  }),
  PII_HMAC: fields.default([]).register(ABOUT, {
    text: 'Fields whose value is replaced by its HMAC, so that equal values stay equal. In orders, only text fields. Requires `PII_HMAC_KEY`.',
    isPerAccount: true,
  }),
  PII_HMAC_KEY: hmacKey.optional().register(ABOUT, {
    text: 'Key of that HMAC: 16 characters or more, and random.',
    secret: 'key',
    isPerAccount: true,
  }),
};

const PROCESS = {
  ACCOUNTS_DIR: text.optional().register(ABOUT, {
    text: 'Folder with a file `<account>.env` for each account of a [fleet](fleet.md); unset: one account, with these settings.',
  }),
  INSTANCE_NAME: name(100).optional().register(ABOUT, {
    text: "Name of this process in a fleet; unset: the host's name and a random suffix.",
  }),
  STATE_DIR: text.default('.cellarstream').register(ABOUT, {
    text: 'Folder for the images of records, a cache that is rebuilt from Kafka, and for recent request times. Only one process can use it at a time.',
  }),
  HTTP_HOST: hostName.default('127.0.0.1').register(ABOUT, {
    text: 'Address that the status page, health and metrics listen on.',
  }),
  HTTP_PORT: integer(0, 65_535).default(9_464).register(ABOUT, {
    text: 'Port that they listen on; 0 takes any free port.',
  }),
  LOG_LEVEL: oneOf(...LOG_LEVELS)
    .default('info')
    .register(ABOUT, {
      text: '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`.',
    }),
};

/** All settings by section, in the order of docs/settings.md. */
export const SECTIONS = {
  'The API': API,
  Kafka: KAFKA,
  'Schema registry': SCHEMA_REGISTRY,
  Proxies: PROXIES,
  Topics: TOPICS,
  Reading: READING,
  Quota: QUOTA,
  'Personal fields': PERSONAL_FIELDS,
  'The process': PROCESS,
};

export const SCHEMA = z.object({
  ...API,
  ...KAFKA,
  ...SCHEMA_REGISTRY,
  ...PROXIES,
  ...TOPICS,
  ...READING,
  ...QUOTA,
  ...PERSONAL_FIELDS,
  ...PROCESS,
});
export type Settings = z.output<typeof SCHEMA>;
export type Name = keyof Settings;

const NAMES = Object.keys(SCHEMA.shape) as Name[];

/** Returns a setting's description, its group, and whether it is a secret or may differ between accounts. */
export function aboutSetting(setting: Name): AboutSetting {
  return ABOUT.get(SCHEMA.shape[setting])!;
}

/** Returns the names of the settings whose {@link AboutSetting} has this property. */
function namesWith(property: keyof AboutSetting): readonly Name[] {
  return NAMES.filter((setting) => aboutSetting(setting)[property] !== undefined);
}

/** Settings that hold a secret. Alternatively, `<name>_FILE` may hold the path of a file that contains the secret. */
export const SECRETS = namesWith('secret');

/** Settings that some commands require. */
export const NEEDED = namesWith('needed');

/** Settings that hold the path of a file; the file's content becomes their value. */
export const CONTENTS = NAMES.filter((setting) => setting.endsWith('_FILE'));

/** Names of all settings, `*_FILE` names of secrets included. */
export const SETTINGS: readonly string[] = [...NAMES, ...SECRETS.map((each) => `${each}_FILE`)];

/** Settings that an account's file may set, without the `*_FILE` names of its secrets. */
export const ACCOUNT_SETTINGS = namesWith('isPerAccount');

/** Returns the name of the setting that contains the key fields of a list. */
export function keyFieldsSetting(resource: Resource): Name {
  return `KEY_FIELDS_${resource.toUpperCase().replaceAll('-', '_')}` as Name;
}
