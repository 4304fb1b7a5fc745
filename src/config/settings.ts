import { z } from 'zod';
import { parameterSetting } from '../description/checks.ts';
import { credentialsIn, CREDENTIALS } from '../description/credentials.ts';
import { loginOf, MIN_PAGE_SIZE, oauth2Of } from '../description/description.ts';
import type { ApiDescription, ListDescription } from '../description/description.ts';
import { describedQuota } from '../description/quota-limits.ts';
import {
  brokers,
  certificates,
  fieldExamples,
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
  pointerExamples,
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

/** Properties of a setting except its parser and default. */
export interface AboutSetting {
  /** Meaning of the setting, in Markdown. docs/settings.md and .env.example contain this text, followed by the accepted range. */
  readonly text: string;
  /**
   * Noun for the secret, such as `password`; only for settings that hold a secret. `<name>_FILE` may name a file that contains the secret.
   */
  readonly secret?: string;
  /**
   * Present only for settings that a command can require. `in`: the group in which the setting is required. `advice`: the explanation in
   * the error message about a missing value.
   */
  readonly needed?: { readonly in: Need; readonly advice?: string };
}

const ABOUT = z.registry<AboutSetting>();

/** Registers the properties of a setting, and returns its parser. */
function setting<T extends z.ZodType>(parser: T, about: AboutSetting): T {
  ABOUT.add(parser, about);
  return parser;
}

// The settings, by their sections in docs/settings.md. After a change `npm run docs` updates that page and .env.example.
// Settings that depend on the API's description are made by functions. The others are constants, among them all that hold a secret or the
// path of a file: those are read before the description is known.

/**
 * Returns the parser of a credential's setting. The setting is required if the API description contains `{<variable>}`.
 *
 * @param noun What the secret is called in texts, such as `client secret`.
 * @param more Text to append to the setting's documentation.
 */
function credential(variable: string, noun: string, more = '') {
  return setting(secret.optional(), {
    text: `Value of \`{${variable}}\` in the description; required if it is used there.${more}`,
    secret: noun,
    needed: { in: 'api' },
  });
}

const API = {
  API_DESCRIPTION: setting(text.optional(), {
    text: 'Path of the file that describes the API and its lists (YAML or JSON); unset: the built-in description. `cellarstream describe` checks such a file.',
  }),
  MEASURED: setting(text.optional(), {
    text: 'Path of a file with the output of `cellarstream check --measure`; it replaces `measured` of the description. `run` does not start if the measurement has refuted a property of the description, unless it has the flag `--believe`.',
  }),
  API_KEY: setting(secret.optional(), {
    text:
      'The API key, which is the value of `{api_key}` in the description. ' +
      "The built-in API's key is created by the account owner in the admin settings, on the API access page.",
    secret: 'API key',
    needed: {
      in: 'api',
      advice:
        'the key of the API; that of the built-in API is made by the account owner in the admin settings, on the API access page',
    },
  }),
  API_USERNAME: credential('username', 'user name'),
  API_PASSWORD: credential('password', 'password'),
  API_CLIENT_ID: credential('client_id', 'client id'),
  API_CLIENT_SECRET: credential('client_secret', 'client secret'),
  API_REFRESH_TOKEN: credential(
    'refresh_token',
    'refresh token',
    ' If the API replaces refresh tokens, the newest one is in the file `refresh-token` of `STATE_DIR`: do not lose it.',
  ),
  API_KEY_PATIENCE_MS: setting(milliseconds(0).default(600_000), {
    text:
      'How long the API may refuse a key or other credentials that have worked in this process before `run` ends: a gateway in trouble ' +
      'refuses valid keys too. A key that never worked ends `run` at once.',
  }),
  API_CA_FILE: setting(certificates.optional(), {
    text: "File with the certificates (PEM) of the authorities to trust for the API, instead of Node's own. Requires an address with `https://`.",
  }),
  ACCOUNT_NAME: setting(name(100, /^(?!\.+$)[\w.-]+$/).default('default'), {
    text:
      'Name of the account that the key belongs to. It is in `source.name` of every event, in cursors and in transactional ids. ' +
      "Each account needs a `TOPIC_PREFIX` of its own: the keys of messages don't contain the account, and `run` refuses to share a prefix. " +
      "Don't change it later: another name is another account, which starts with an initial snapshot.",
  }),
};

/** Returns the definitions of the settings for the API's addresses and for the values of the description's parameters. */
function addressSettings(description: ApiDescription) {
  const { parameters } = description;
  const root = commonRoot(description);
  const oauth2 = oauth2Of(description);
  const address = oauth2?.token_url ?? loginOf(description)?.path ?? '';
  const loginAddress = `${address.startsWith('http') ? '' : '<base>'}${address}`;
  return {
    API_BASE_URL: setting(
      httpAddress()
        .transform((url) => withoutEnd(withoutSlash(url), root))
        .optional(),
      {
        text:
          `Address of the API${root && `, with or without a trailing \`${root}\` (the staging server's address ends in it)`}. Lists are requested at \`<base>${root}/<resource>\`. ` +
          "With `API_DESCRIPTION`: each `path` of the description is appended to it, after the address's own path if there is one. If the paths of all lists and of the login begin with the same part, such as `/v1`, the address may end in that part.",
        needed: { in: 'api', advice: 'it is the address of the API, such as https://api.example' },
      },
    ),
    API_LOGIN_URL: setting(httpAddress().optional(), {
      text: `Address of the ${oauth2 ? 'token endpoint' : 'login'}, if it is not \`${loginAddress}\`; with \`API_DESCRIPTION\`, if it is not that of the description's \`login\` or \`oauth2\`.`,
    }),
    ...(Object.fromEntries(
      parameters.map((parameter) => [
        parameterSetting(parameter),
        setting(text.optional(), {
          text: `Value of \`{${parameter}}\` in the description.`,
          needed: { in: 'api' },
        }),
      ]),
    ) as object),
  };
}

/** Returns the segment with which the paths of all lists and of the login begin, such as `/v1`; empty if they begin differently. */
function commonRoot(description: ApiDescription): string {
  const { lists } = description;
  const login = loginOf(description);
  const paths = [
    ...(login ? [login.path] : []),
    ...lists.flatMap(({ path, one }) => [path, one?.path ?? path]),
  ];
  const root = /^\/[^/{]+(?=\/)/.exec(paths[0]!)?.[0] ?? '';
  return paths.every((path) => path.startsWith(`${root}/`)) ? root : '';
}

function withoutEnd(url: string, end: string): string {
  return end !== '' && url.endsWith(end) ? withoutSlash(url.slice(0, -end.length)) : url;
}

const KAFKA = {
  KAFKA_BROKERS: setting(brokers.optional(), {
    text: 'Brokers to connect to first, as `host:port`, separated by commas.',
    needed: { in: 'kafka', advice: 'it is host:port of one or more brokers' },
  }),
  KAFKA_SSL: setting(oneOf('true', 'false').default('false'), {
    text: '`true`: connect with TLS.',
  }),
  KAFKA_SSL_CA_FILE: setting(certificates.optional(), {
    text:
      "File with the certificates (PEM) of the authorities to trust for the brokers, instead of Node's own. " +
      "For `KAFKA_OAUTH_TOKEN_URL` these certificates are trusted in addition to Node's own. Requires `KAFKA_SSL=true`.",
  }),
  KAFKA_SSL_CERT_FILE: setting(certificates.optional(), {
    text: "File with the client's certificate (PEM), followed by its intermediate certificates. Requires `KAFKA_SSL_KEY_FILE` and `KAFKA_SSL=true`.",
  }),
  KAFKA_SSL_KEY_FILE: setting(privateKey.optional(), {
    text: 'File with the private key of the certificate in `KAFKA_SSL_CERT_FILE` (PEM).',
  }),
  KAFKA_SSL_KEY_PASSWORD: setting(secret.optional(), {
    text: 'Password of the private key in `KAFKA_SSL_KEY_FILE`, if the key is encrypted.',
    secret: 'password',
  }),
  KAFKA_SASL_MECHANISM: setting(
    oneOf('plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer', 'aws-msk-iam').optional(),
    {
      text:
        'How to log in to the brokers; unset: no login. `plain`, `scram-sha-256` and `scram-sha-512` require ' +
        '`KAFKA_SASL_USERNAME` and `KAFKA_SASL_PASSWORD`; `oauthbearer` requires the settings that begin with `KAFKA_OAUTH_`; ' +
        '`aws-msk-iam` requires `KAFKA_SSL=true`, AWS credentials, and the package `aws-msk-iam-sasl-signer-js` installed beside this one. ' +
        'Examples: [security.md](security.md#managed-clusters).',
    },
  ),
  KAFKA_SASL_USERNAME: setting(text.optional(), { text: 'User name at the brokers.' }),
  KAFKA_SASL_PASSWORD: setting(secret.optional(), {
    text: 'Password at the brokers.',
    secret: 'password',
  }),
  KAFKA_OAUTH_TOKEN_URL: setting(httpAddress({ isQueryAllowed: true }).optional(), {
    text:
      "Address of the identity provider's token endpoint, which issues access tokens for the brokers (OAuth 2, client credentials). " +
      'With `http://` the client secret crosses the network in clear text, and a warning says so.',
  }),
  KAFKA_OAUTH_CLIENT_ID: setting(text.optional(), {
    text: 'OAuth 2 client id of this service at the identity provider.',
  }),
  KAFKA_OAUTH_CLIENT_SECRET: setting(secret.optional(), {
    text: 'OAuth 2 client secret of this service at the identity provider.',
    secret: 'client secret',
  }),
  KAFKA_OAUTH_SCOPE: setting(text.optional(), {
    text: 'Scopes to request, with spaces between; unset: none.',
  }),
  KAFKA_OAUTH_EXTENSIONS: setting(saslExtensions.optional(), {
    text: 'SASL extensions that are sent with each token, as `name=value` separated by commas, such as `logicalCluster=lkc-1,identityPoolId=pool-2`.',
  }),
  AWS_REGION: setting(text.optional(), {
    text: "Region of the cluster for `aws-msk-iam`, if the host names in `KAFKA_BROKERS` don't contain it. It is AWS's own variable.",
  }),
};

const SCHEMA_REGISTRY = {
  SCHEMA_REGISTRY_URL: setting(httpAddress().transform(withoutSlash).optional(), {
    text: "Address of a registry with Confluent's API, including the path (Apicurio's ends in `/apis/ccompat/v7`).",
    needed: {
      in: 'registry',
      advice: 'it is the address of the schema registry, such as http://127.0.0.1:8081',
    },
  }),
  SCHEMA_REGISTRY_USERNAME: setting(text.optional(), {
    text: 'User name at the registry (HTTP Basic); unset: none is sent. At Confluent Cloud it is an API key that was created for its Schema Registry.',
  }),
  SCHEMA_REGISTRY_PASSWORD: setting(secret.optional(), {
    text: 'Password at the registry.',
    secret: 'password',
  }),
  SCHEMA_REGISTRY_TOKEN: setting(secret.optional(), {
    text: 'Bearer token for the registry, instead of a user name and a password.',
    secret: 'token',
  }),
  SCHEMA_REGISTRY_OAUTH_TOKEN_URL: setting(httpAddress({ isQueryAllowed: true }).optional(), {
    text:
      'Address of the token endpoint that issues bearer tokens for the registry (OAuth 2, client credentials). ' +
      'With `http://` the client secret crosses the network in clear text, and a warning says so.',
  }),
  SCHEMA_REGISTRY_OAUTH_CLIENT_ID: setting(text.optional(), {
    text: 'OAuth 2 client id for `SCHEMA_REGISTRY_OAUTH_TOKEN_URL`.',
  }),
  SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET: setting(secret.optional(), {
    text: 'OAuth 2 client secret for `SCHEMA_REGISTRY_OAUTH_TOKEN_URL`.',
    secret: 'client secret',
  }),
  SCHEMA_REGISTRY_OAUTH_SCOPE: setting(text.optional(), {
    text: 'Scopes to request, with spaces between; unset: none.',
  }),
  SCHEMA_REGISTRY_HEADERS: setting(headers.optional(), {
    text: 'Additional headers of each request to the registry: `Name: value`, with commas or line ends between.',
    secret: 'headers',
  }),
  SCHEMA_REGISTRY_CA_FILE: setting(certificates.optional(), {
    text:
      "File with the certificates (PEM) of the authorities to trust for the registry, instead of Node's own. " +
      "For `SCHEMA_REGISTRY_OAUTH_TOKEN_URL` these certificates are trusted in addition to Node's own. Requires an address with `https://`.",
  }),
  SCHEMA_REGISTRY_CERT_FILE: setting(certificates.optional(), {
    text: 'File with a client certificate (PEM), followed by its intermediate certificates. Requires `SCHEMA_REGISTRY_KEY_FILE` and an address with `https://`.',
  }),
  SCHEMA_REGISTRY_KEY_FILE: setting(privateKey.optional(), {
    text: 'File with the private key of the certificate in `SCHEMA_REGISTRY_CERT_FILE` (PEM, not encrypted).',
  }),
};

const PROXIES = {
  HTTP_PROXY: setting(proxy.optional(), {
    text:
      'Address of the proxy for `http://` addresses, such as `http://proxy.example:3128` or `http://user:password@proxy.example:3128` ' +
      '(special characters as `%XX`); also for `https://` addresses while `HTTPS_PROXY` is unset.',
    secret: 'address of the proxy',
  }),
  HTTPS_PROXY: setting(proxy.optional(), {
    text: 'Address of the proxy for `https://` addresses. TLS is negotiated with the server itself, through the proxy.',
    secret: 'address of the proxy',
  }),
  NO_PROXY: setting(text.optional(), {
    text:
      'Hosts that are reached without a proxy, with commas or spaces between. `example.com` includes all its subdomains, ' +
      '`host:port` is one port; IP addresses, ranges such as `10.0.0.0/8`, and `*` for all hosts are allowed too.',
  }),
};

const topicSettings = ({ api, lists }: ApiDescription) => ({
  TOPIC_PREFIX: setting(name(200).default(api), {
    text: `Prefix of the topics' names, as in \`${api}.${lists[0]!.name}\`. The default is the name of the API (\`api\` of the description).`,
  }),
  TOPIC_PARTITIONS: setting(integer(1, 10_000).default(6), {
    text: 'Number of partitions of the topics that `run` creates. Existing topics keep theirs.',
  }),
  TOPIC_REPLICATION: setting(integer(1, 100).optional(), {
    text: 'Replication factor of the topics that `run` creates; unset: 3, or the number of brokers if that is smaller.',
  }),
});

function keyFieldsSettings({ lists }: ApiDescription): object {
  const free = lists.filter(({ one }) => !one);
  const ruleOf = (list: ListDescription) => {
    const keys = singleReadKeys(list);
    if (keys) {
      const isDefault = keys.length === 1 ? ', which is also the default' : '';
      return `. Only \`${keys.join('` or `')}\` is allowed${isDefault}.`;
    }
    if (list !== free[0]) return `; see \`${keyFieldsSetting(free[0]!.name)}\`.`;
    return (
      ', separated by commas; unset: chosen from the first page, see [resources.md](resources.md). ' +
      "Can't be changed once events are published."
    );
  };
  return Object.fromEntries(
    lists.map((list) => {
      const text = `Fields that make up the key of records in \`${list.name}\`${ruleOf(list)}`;
      return [keyFieldsSetting(list.name), setting(fieldNames.optional(), { text })];
    }),
  );
}

/**
 * Returns the possible keys of a list whose records can be requested one by one; each key is given as its field names, joined by commas.
 * Undefined if the API has no request for a single record: any fields may be the key.
 */
export function singleReadKeys({ one, keyCandidates }: ListDescription): string[] | undefined {
  return one && keyCandidates.map((fields) => fields.join());
}

const readingSettings = (description: ApiDescription, lists: readonly string[]) => ({
  RESOURCES: setting(resources(lists).default([...lists]), {
    text: 'Lists to read, separated by commas; the default is all lists of the description. See [resources.md](resources.md).',
  }),
  POLL_INTERVAL_MS: setting(milliseconds(100).optional(), {
    text:
      'Time from one poll of a list to the next; unset: as often as the quota allows. ' +
      'For lists without dates: time from one sweep to the next. The lists of an account are not polled all at once: ' +
      'between its first and its second poll each list waits for a different part of this time.',
  }),
  LOOKBACK_MS: setting(milliseconds(0).default(60_000), {
    text:
      `A record that becomes visible up to this long after its ${modificationTimes(description)} is still found, at most this long after it became visible. ` +
      'For that, one poll per `LOOKBACK_MS` requests the records that were modified since `LOOKBACK_MS` before the previous such poll; the other polls request those since ten seconds before the previous poll.',
  }),
  SWEEP_INTERVAL_MS: setting(milliseconds(100).default(86_400_000), {
    text:
      'Time from the start of one sweep of a list with dates to the start of the next; the default is a day. ' +
      'A sweep reads the whole list and finds deletions. Lists without dates are always read by sweeps.',
  }),
  START_FROM: setting(isoInstant.optional(), {
    text:
      'ISO 8601 date, or time with its zone (`2025-01-31`, `2025-01-31T08:00Z`). In lists with dates, the initial snapshot reads ' +
      'only records that were modified at that time or later; unset: all.',
  }),
  PAGE_SIZE: setting(
    integer(MIN_PAGE_SIZE, maxPageSize(description), ' (pages overlap)').default(
      maxPageSize(description),
    ),
    {
      text:
        'Page size: number of records that a request asks for, in lists whose requests contain the page size. The default, which is also the maximum, is the smallest `limit` of all lists of the description, but at least 21; ' +
        '1000 if no list has a `limit`.',
    },
  ),
  DELETE_LIMIT_PERCENT: setting(percent.default(5), {
    text:
      "When more than this share of a list's records (and more than 20), or more than a third of them (and more than 2), " +
      'go missing between two full scans, no deletion is published, and an error is logged. 100 publishes all deletions.',
  }),
  DELETE_PROOF_MS: setting(milliseconds(0, 86_400_000).default(60_000), {
    text:
      'How long a record has to stay missing before its deletion is published: if the API leaves out records for a shorter time, no deletion is published. ' +
      'See [resources.md](resources.md#deletions).',
  }),
  CERTIFICATE_INTERVAL_MS: setting(milliseconds(100).default(60_000), {
    text: 'Shortest time from one [certificate](certificates.md) of a list to the next.',
  }),
  KEY_FORMAT: setting(oneOf('text', 'avro').default('text'), {
    text:
      'How keys are encoded in the topics of records and status changes: `text`, or `avro`, an Avro record with a string for each ' +
      'key field under the subject `<topic>-key`, which [sinks of Debezium](consumers.md#from-kafka-connect) require. ' +
      "Either way the text of the key determines the partition. Can't be changed once events are published. " +
      'Set `avro` only when all instances have a version that knows this setting: an older one misreads such keys.',
  }),
  ...keyFieldsSettings(description),
  VOLATILE_FIELDS: setting(pointers(lists).default([]), {
    text:
      `Fields that cause no event when only they change, as ${pointerExamples(lists, '`')} (JSON Pointers without ` +
      'array indexes: an array on the path means each of its elements), separated by commas. ' +
      'See [resources.md](resources.md#fields-that-differ-in-every-answer).',
  }),
});

function modificationTimes({ lists }: ApiDescription): string {
  const fields = new Set(lists.flatMap(({ updated }) => updated));
  return [...fields].map((field) => `\`${field}\``).join(' or ') || 'modification time';
}

/** Returns the largest allowed page size: the smallest `limit` of all lists, at least {@link MIN_PAGE_SIZE}; without limits, 1000. */
function maxPageSize({ lists }: ApiDescription): number {
  const limits = lists.flatMap(({ limit }) => limit ?? []);
  return limits.length === 0 ? 1_000 : Math.max(MIN_PAGE_SIZE, Math.min(...limits));
}

function quotaSettings(description: ApiDescription) {
  const { perMinute, scope, login } = describedQuota(description);
  return {
    QUOTA_PER_MINUTE: setting(integer(1, 1_000_000).default(perMinute), {
      text:
        "Number of list requests that the API allows in any 60 seconds. The default is the smallest limit of the description's `quota`, as requests a minute. " +
        'This setting replaces that limit alone. These stay in force: limits per second, the `quota` of a single list, and limits `per list` where `quota` also has limits `per key`.',
    }),
    LOGIN_QUOTA_PER_MINUTE: setting(integer(1, 1_000_000).default(login.perMinute), {
      text: 'Number of logins that the API allows in any 60 seconds. The default is `quota` of the `login` in the description, or 10.',
    }),
    QUOTA_SCOPE: setting(oneOf('endpoint', 'key').default(scope), {
      text:
        'How the API counts list requests: `endpoint`, for each list separately; `key`, for all lists of an API key together. ' +
        'The default follows from `quota` of the description: `endpoint` if all its limits are `per list`, otherwise `key`.',
    }),
    INITIAL_SNAPSHOT_PERCENT: setting(integer(1, 95).default(73), {
      text:
        'Percentage of the quota for the initial snapshot of a list with dates. Until the snapshot ends, polls have the rest of the quota, and the snapshot also gets ' +
        'the requests that polls leave unused: with 73 there is a poll every 2.2 seconds. A lower value publishes changes sooner, a higher value ends the snapshot sooner.',
    }),
  };
}

const personalFieldsSettings = ({ lists }: ApiDescription, names: readonly string[]) => {
  const typed = lists.filter(({ types }) => types !== undefined).map((list) => list.name);
  const onlyTexts = typed.length > 0 ? ` In ${typed.join(', ')}, only text fields.` : '';
  return {
    PII_DROP: setting(fields(names).default([]), {
      text:
        `Fields to leave out before anything is published or stored, as ${fieldExamples(names, '`')} ` +
        '(the path passes through arrays, without indexes), separated by commas. A field may be in only one of `PII_DROP`, `PII_MASK` and `PII_HMAC`.',
    }),
    PII_MASK: setting(fields(names).default([]), {
      text: `Fields whose value is replaced by \`***\`.${onlyTexts}`,
    }),
    PII_HMAC: setting(fields(names).default([]), {
      text: `Fields whose value is replaced by its HMAC, so that equal values stay equal.${onlyTexts} Requires \`PII_HMAC_KEY\`.`,
    }),
    ...PERSONAL_FIELDS,
  };
};

const PERSONAL_FIELDS = {
  PII_HMAC_KEY: setting(hmacKey.optional(), {
    text: 'Secret key of the HMAC of `PII_HMAC`: 16 characters or more, and random.',
    secret: 'key',
  }),
};

const PROCESS = {
  ACCOUNTS_DIR: setting(text.optional(), {
    text: 'Folder with a file `<account>.env` for each account of a [fleet](fleet.md); unset: one account, with these settings.',
  }),
  INSTANCE_NAME: setting(name(100).optional(), {
    text: "Name of this process in a fleet; unset: the host's name and a random suffix.",
  }),
  STATE_DIR: setting(text.default('.cellarstream'), {
    text: 'Folder for the store of published records, a cache that is rebuilt from Kafka, and for the times of recent requests. Only one process can use it at a time.',
  }),
  HTTP_HOST: setting(hostName.default('127.0.0.1'), {
    text: 'Address that the status page, health and metrics listen on.',
  }),
  HTTP_PORT: setting(integer(0, 65_535).default(9_464), {
    text: 'Port of the status page, health and metrics; 0 takes any free port.',
  }),
  LOG_LEVEL: setting(oneOf(...LOG_LEVELS).default('info'), {
    text: '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`.',
  }),
};

/** Settings that are the same for every API description. */
const FIXED = { ...API, ...KAFKA, ...SCHEMA_REGISTRY, ...PROXIES, ...PERSONAL_FIELDS, ...PROCESS };
const FIXED_NAMES = Object.keys(FIXED) as (keyof typeof FIXED)[];

/** Settings that hold a secret. Alternatively, `<name>_FILE` may hold the path of a file that contains the secret. */
export const SECRETS: readonly (keyof typeof FIXED)[] = FIXED_NAMES.filter(
  (setting) => ABOUT.get(FIXED[setting])!.secret !== undefined,
);

/**
 * Settings with a name that ends in `_FILE`, such as `API_CA_FILE`. They hold the path of a file, and the file's content becomes their
 * value.
 */
export const CONTENTS = FIXED_NAMES.filter((setting) => setting.endsWith('_FILE'));

/**
 * Sections with the settings that an account's file may contain, except those in {@link OF_INSTANCE}. All other settings belong to the
 * instance.
 */
const ACCOUNT_SECTIONS = ['The API', 'Topics', 'Reading', 'Quota', 'Personal fields'] as const;
const OF_INSTANCE = [
  ...['API_DESCRIPTION', 'MEASURED', 'ACCOUNT_NAME', 'TOPIC_PARTITIONS', 'TOPIC_REPLICATION'],
  'CERTIFICATE_INTERVAL_MS',
];

function settingTable(description: ApiDescription) {
  const lists = description.lists.map((list) => list.name);
  const { API_DESCRIPTION, MEASURED, API_KEY, API_KEY_PATIENCE_MS, ...otherApi } = API;
  const used: readonly string[] = credentialsIn(description.auth).map((name) => CREDENTIALS[name]);
  const unused = Object.values(CREDENTIALS).filter((setting) => !used.includes(setting));
  const { API_BASE_URL, API_LOGIN_URL, ...parameters } = addressSettings(description);
  const sections = {
    'The API': {
      ...{ API_DESCRIPTION, MEASURED, API_BASE_URL, API_KEY, API_KEY_PATIENCE_MS, API_LOGIN_URL },
      ...parameters,
      ...otherApi,
    },
    Kafka: KAFKA,
    'Schema registry': SCHEMA_REGISTRY,
    Proxies: PROXIES,
    Topics: topicSettings(description),
    Reading: readingSettings(description, lists),
    Quota: quotaSettings(description),
    'Personal fields': personalFieldsSettings(description, lists),
    'The process': PROCESS,
  };
  const schema = z.object({
    ...sections['The API'],
    ...sections.Kafka,
    ...sections['Schema registry'],
    ...sections.Proxies,
    ...sections.Topics,
    ...sections.Reading,
    ...sections.Quota,
    ...sections['Personal fields'],
    ...sections['The process'],
  });
  const about = (setting: string): AboutSetting => ABOUT.get(schema.shape[setting as Name])!;
  const all = Object.keys(schema.shape);
  return {
    /** All settings by section, in the order of docs/settings.md. */
    sections,
    schema,
    /** Returns the properties of a setting except its parser and default. */
    about,
    /** Names of all settings, `*_FILE` names of secrets included. */
    names: withFileNames(all),
    /** Names of the settings that at least one command requires. */
    needed: all.filter(
      (setting) =>
        about(setting).needed !== undefined && !unused.some((credential) => credential === setting),
    ),
    /** Names of the settings that an account's file may set, `*_FILE` names of secrets included. */
    perAccount: withFileNames(
      ACCOUNT_SECTIONS.flatMap((title) => Object.keys(sections[title])).filter(
        (setting) => !OF_INSTANCE.includes(setting),
      ),
    ),
  };
}

/** Returns the names, followed by the `*_FILE` names of those that hold a secret. */
function withFileNames(names: readonly string[]): readonly string[] {
  const secrets = SECRETS.filter((secret) => names.includes(secret));
  return [...names, ...secrets.map((secret) => `${secret}_FILE`)];
}

/** All settings of the service with one API description: their sections, parsers, names and documentation. */
export type SettingTable = ReturnType<typeof settingTable>;
/**
 * Values of the settings, by name. The type lacks the settings whose names depend on the API description: `KEY_FIELDS_<LIST>` and
 * `API_PARAM_<NAME>`.
 */
export type Settings = z.output<SettingTable['schema']>;
export type Name = keyof Settings;

/** Caches the setting table of each API description: thousands of accounts of a fleet share one description. */
const TABLES = new WeakMap<ApiDescription, SettingTable>();

export function settingsFor(description: ApiDescription): SettingTable {
  const table = TABLES.get(description) ?? settingTable(description);
  TABLES.set(description, table);
  return table;
}

export function keyFieldsSetting(resource: string): string {
  return `KEY_FIELDS_${resource.toUpperCase().replaceAll('-', '_')}`;
}
