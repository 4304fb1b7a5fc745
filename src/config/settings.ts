import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { RESOURCES } from '../resources/resources.ts';
import type { Resource } from '../resources/resources.ts';
import { pointerNames } from '../schemas/json/json.ts';
import { readProxy } from '../core/proxies.ts';
import { Secret } from '../core/secret.ts';

/** Log levels, from the most verbose to none. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
/** Lowest level of the log messages that are written. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Default values of settings. Settings that are not listed are unset by default. */
export const DEFAULTS = {
  API_KEY_PATIENCE_MS: 600_000,
  ACCOUNT_NAME: 'default',
  KAFKA_SSL: 'false',
  TOPIC_PREFIX: 'wine',
  TOPIC_PARTITIONS: 6,
  RESOURCES,
  LOOKBACK_MS: 60_000,
  SWEEP_INTERVAL_MS: 86_400_000,
  QUOTA_PER_MINUTE: 100,
  LOGIN_QUOTA_PER_MINUTE: 10,
  QUOTA_SCOPE: 'endpoint',
  KEY_FORMAT: 'text',
  INITIAL_SNAPSHOT_PERCENT: 73,
  PAGE_SIZE: 1_000,
  DELETE_LIMIT_PERCENT: 5,
  DELETE_PROOF_MS: 60_000,
  CERTIFICATE_INTERVAL_MS: 60_000,
  STATE_DIR: '.cellarstream',
  HTTP_HOST: '127.0.0.1',
  HTTP_PORT: 9_464,
  LOG_LEVEL: 'info',
} as const;

/** A field of a list's records. A path passes through arrays: `orders.tender_info.last_four` means the field of every element. */
export interface FieldPointer {
  readonly resource: Resource;
  readonly path: readonly string[];
}

// Validators for each kind of setting. They convert its text into its value, or report advice that follows the setting's name.

const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  z
    .string()
    .toLowerCase()
    .pipe(z.enum(values, { error: `must be one of ${values.join(', ')}` }));

const matching = (pattern: RegExp, advice: string) => z.string().regex(pattern, advice);

const integerSetting = (least: number, most: number, why = '') => {
  const advice = `must be a whole number from ${least} to ${most}${why}`;
  return matching(/^\d{1,15}$/, advice)
    .transform(Number)
    .refine((value) => value >= least && value <= most, advice);
};

/** Longest delay of Node's timers, in ms; longer ones fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** Upper limit of `DELETE_PROOF_MS`, in ms. */
const A_DAY_MS = 86_400_000;
const milliseconds = (least = 100) => integerSetting(least, LONGEST_TIMER_MS, ' milliseconds');

const list = z.string().transform(itemsOf);
const items = (valid: (item: string) => boolean, advice: string) =>
  list.refine((all) => all.length > 0 && all.every(valid), advice);

const resources = list.transform((all, context): Resource[] => {
  const unknown = all.filter((item) => !isResource(item));
  if (unknown.length === 0 && all.length > 0) return all.filter(isResource);
  const which = unknown.map((item) => JSON.stringify(item.slice(0, 40))).join(', ') || 'nothing';
  context.addIssue(`names ${which}: it must be of ${RESOURCES.join(', ')}, with commas between`);
  return z.NEVER;
});

/**
 * Field names joined by dots. Rejects spellings that would silently match no field: a space next to a dot, and path syntax of other
 * languages, such as `[0]`, `.0.`, `/` and `*`.
 */
const FIELD = /^[^.]+(\.(?!\s|\d+(\.|$))[^.[\]/*]+(?<!\s))+$/;

/** Comma-separated field names. The error text does not repeat the items: it would reveal a key pasted into `PII_HMAC` by mistake. */
const fields = items(
  (item) => FIELD.test(item) && isResource(item.split('.')[0]!),
  `must be fields such as orders.email or orders.tender_info.last_four, with commas between ` +
    `(a path means every element of an array: no indexes, and no [ ] / *); the first word is one of ${RESOURCES.join(', ')}`,
).transform((all) =>
  all.map((item): FieldPointer => {
    const [resource, ...path] = item.split('.');
    return { resource: resource as Resource, path };
  }),
);

/**
 * A list, a colon and a JSON Pointer without array indexes. Rejects spellings that would silently match no field: array indexes, spaces
 * next to a slash, and path syntax of other languages.
 */
const POINTER = /^([^:]+):((?:\/(?!\s|(?:\d+|-)(?:\/|$))(?:[^~/[\]*]|~[01])+(?<!\s))+)$/;

const pointers = items(
  (item) => isResource(POINTER.exec(item)?.[1] ?? ''),
  `must be JSON Pointers such as products:/image_url or products:/images/url, with commas between ` +
    `(a path means every element of an array: no indexes, and no [ ] *); the word before the colon is one of ${RESOURCES.join(', ')}`,
).transform((all) =>
  all.map((item): FieldPointer => {
    const [, resource, pointer] = POINTER.exec(item)!;
    return { resource: resource as Resource, path: pointerNames(pointer!) };
  }),
);

const names = items(() => true, 'must be names of fields, with commas between');

const brokers = items((item) => {
  const [, port] = /^[\w.-]+:(\d{1,5})$/.exec(item) ?? [];
  return Number(port) >= 1 && Number(port) <= 65_535;
}, 'must be host:port of one or more brokers, with commas between and no protocol');

const httpAddress = (queryAllowed: boolean) =>
  z.string().transform((text, context): string => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
      context.addIssue('must be an http or https address, such as https://host.example');
    } else if (url.username || url.password) {
      context.addIssue('must not hold a user or a password: they have settings of their own');
    } else if (url.hash || (url.search && !queryAllowed)) {
      const parts = queryAllowed ? 'a fragment (#)' : 'a query (?) and a fragment (#)';
      context.addIssue(`must be an address without ${parts}`);
    } else return url.href;
    return z.NEVER;
  });
const address = httpAddress(false);
const withoutSlash = (url: string) => url.replace(/\/+$/, '');

const proxy = z.string().transform((text, context) => {
  const server = readProxy(text);
  if (server) return server;
  context.addIssue(
    'must be the address of an HTTP proxy, such as http://proxy.example:3128 or http://user:password@proxy.example:3128 ' +
      '(write special characters of a password as %XX; SOCKS proxies are not supported)',
  );
  return z.NEVER;
});

const certificates = z.string().refine(holdsCertificates, {
  error: 'must name a file with certificates in PEM form, each of them complete',
});

const privateKey = secretText(
  z.string().regex(/-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^]+-----END /, {
    error:
      'must name a PEM file with a private key (to extract it from a PKCS #12 file: openssl pkcs12 -in FILE -nocerts)',
  }),
);

/** SASL extensions as in RFC 7628, section 3.1: names of letters only, values of visible characters. */
const extensions = items(
  (item) => /^(?!auth=)[A-Za-z]+=[\x20-\x7e]+$/.test(item),
  'must be name=value, with commas between and names of letters alone, such as logicalCluster=lkc-1,identityPoolId=pool-2',
).transform((all): Readonly<Record<string, string>> =>
  Object.fromEntries(
    all.map((item) => {
      const at = item.indexOf('=');
      return [item.slice(0, at), item.slice(at + 1)];
    }),
  ),
);

/** ISO 8601 date-times with or without seconds. */
const times = [-1, null].map((precision) => z.iso.datetime({ offset: true, precision }));
/** Parses a point in time into epoch ms. */
export const isoInstant = z
  .union([z.iso.date(), ...times], {
    error:
      'must be an ISO 8601 date or time with its zone, such as 2025-01-31 or 2025-01-31T08:00Z',
  })
  .transform((text) => Date.parse(text));

const secret = secretText(z.string());

/** HTTP header fields by name: `Name: value` or `Name=value`, with commas or line ends between. Values may be credentials. */
const headers = z.string().transform((text, context): Readonly<Record<string, Secret>> => {
  const fields = text.split(/[,\n]/).flatMap((field): [string, Secret][] => {
    const [, name, value] =
      /^\s*([!#$%&'*+.^`|~\w-]+)\s*[:=]\s*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\s*$/.exec(
        field,
      ) ?? [];
    return name === undefined ? [] : [[name.toLowerCase(), new Secret(value!)]];
  });
  const count = text.split(/[,\n]/).filter((field) => field.trim() !== '').length;
  if (fields.length === count && count > 0) return Object.fromEntries(fields);
  context.addIssue('must be headers such as X-Tenant: wines, with commas between');
  return z.NEVER;
});

/**
 * Key of the HMAC, at least 16 characters long: a shorter one could be guessed, which would reveal the hidden values. (An empty file is
 * reported elsewhere.)
 */
const hmacKey = matching(/^(.{16,})?$/s, 'must be 16 characters or more, and random').transform(
  (text) => new Secret(text),
);

export const SCHEMA = z.object({
  API_BASE_URL: address
    .transform((url) => withoutSlash(withoutSlash(url).replace(/\/v1$/, '')))
    .optional(),
  API_LOGIN_URL: address.optional(),
  API_CA_FILE: certificates.optional(),
  API_KEY: secret.optional(),
  API_KEY_PATIENCE_MS: milliseconds(0).default(DEFAULTS.API_KEY_PATIENCE_MS),
  ACCOUNT_NAME: matching(
    /^(?!\.+$)[\w.-]{1,100}$/,
    'must be 1 to 100 letters, digits, dots, hyphens or underscores',
  ).default(DEFAULTS.ACCOUNT_NAME),
  KAFKA_BROKERS: brokers.optional(),
  KAFKA_SSL: oneOf(['true', 'false']).default(DEFAULTS.KAFKA_SSL),
  KAFKA_SSL_CA_FILE: certificates.optional(),
  KAFKA_SSL_CERT_FILE: certificates.optional(),
  KAFKA_SSL_KEY_FILE: privateKey.optional(),
  KAFKA_SSL_KEY_PASSWORD: secret.optional(),
  KAFKA_SASL_MECHANISM: oneOf([
    ...(['plain', 'scram-sha-256', 'scram-sha-512'] as const),
    ...(['oauthbearer', 'aws-msk-iam'] as const),
  ]).optional(),
  KAFKA_SASL_USERNAME: z.string().optional(),
  KAFKA_SASL_PASSWORD: secret.optional(),
  KAFKA_OAUTH_TOKEN_URL: httpAddress(true).optional(),
  KAFKA_OAUTH_CLIENT_ID: z.string().optional(),
  KAFKA_OAUTH_CLIENT_SECRET: secret.optional(),
  KAFKA_OAUTH_SCOPE: z.string().optional(),
  KAFKA_OAUTH_EXTENSIONS: extensions.optional(),
  AWS_REGION: z.string().optional(),
  SCHEMA_REGISTRY_URL: address.transform(withoutSlash).optional(),
  SCHEMA_REGISTRY_USERNAME: z.string().optional(),
  SCHEMA_REGISTRY_PASSWORD: secret.optional(),
  SCHEMA_REGISTRY_TOKEN: secret.optional(),
  SCHEMA_REGISTRY_OAUTH_TOKEN_URL: httpAddress(true).optional(),
  SCHEMA_REGISTRY_OAUTH_CLIENT_ID: z.string().optional(),
  SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET: secret.optional(),
  SCHEMA_REGISTRY_OAUTH_SCOPE: z.string().optional(),
  SCHEMA_REGISTRY_HEADERS: headers.optional(),
  SCHEMA_REGISTRY_CA_FILE: certificates.optional(),
  SCHEMA_REGISTRY_CERT_FILE: certificates.optional(),
  SCHEMA_REGISTRY_KEY_FILE: privateKey.optional(),
  HTTP_PROXY: proxy.optional(),
  HTTPS_PROXY: proxy.optional(),
  NO_PROXY: z.string().optional(),
  TOPIC_PREFIX: matching(
    /^[\w.-]{1,200}$/,
    'must be 1 to 200 letters, digits, dots, hyphens or underscores',
  ).default(DEFAULTS.TOPIC_PREFIX),
  TOPIC_PARTITIONS: integerSetting(1, 10_000).default(DEFAULTS.TOPIC_PARTITIONS),
  TOPIC_REPLICATION: integerSetting(1, 100).optional(),
  RESOURCES: resources.default([...DEFAULTS.RESOURCES]),
  POLL_INTERVAL_MS: milliseconds().optional(),
  LOOKBACK_MS: milliseconds(0).default(DEFAULTS.LOOKBACK_MS),
  SWEEP_INTERVAL_MS: milliseconds().default(DEFAULTS.SWEEP_INTERVAL_MS),
  START_FROM: isoInstant.optional(),
  QUOTA_PER_MINUTE: integerSetting(1, 1_000_000).default(DEFAULTS.QUOTA_PER_MINUTE),
  LOGIN_QUOTA_PER_MINUTE: integerSetting(1, 1_000_000).default(DEFAULTS.LOGIN_QUOTA_PER_MINUTE),
  QUOTA_SCOPE: oneOf(['endpoint', 'key']).default(DEFAULTS.QUOTA_SCOPE),
  INITIAL_SNAPSHOT_PERCENT: integerSetting(1, 95).default(DEFAULTS.INITIAL_SNAPSHOT_PERCENT),
  PAGE_SIZE: integerSetting(21, 1_000, ' (pages overlap)').default(DEFAULTS.PAGE_SIZE),
  DELETE_LIMIT_PERCENT: matching(
    /^(100|\d{1,2}(\.\d{1,6})?)$/,
    'must be a number from 0 to 100, without a percent sign',
  )
    .transform(Number)
    .default(DEFAULTS.DELETE_LIMIT_PERCENT),
  CERTIFICATE_INTERVAL_MS: milliseconds().default(DEFAULTS.CERTIFICATE_INTERVAL_MS),
  DELETE_PROOF_MS: integerSetting(0, A_DAY_MS, ' milliseconds').default(DEFAULTS.DELETE_PROOF_MS),
  PII_DROP: fields.default([]),
  PII_MASK: fields.default([]),
  PII_HMAC: fields.default([]),
  PII_HMAC_KEY: hmacKey.optional(),
  VOLATILE_FIELDS: pointers.default([]),
  KEY_FORMAT: oneOf(['text', 'avro']).default(DEFAULTS.KEY_FORMAT),
  KEY_FIELDS_ORDERS: names.optional(),
  KEY_FIELDS_CUSTOMERS: names.optional(),
  KEY_FIELDS_INVENTORY: names.optional(),
  KEY_FIELDS_WINE_CLUBS: names.optional(),
  KEY_FIELDS_WINE_CLUB_MEMBERS: names.optional(),
  KEY_FIELDS_PRODUCTS: names.optional(),
  ACCOUNTS_DIR: z.string().optional(),
  INSTANCE_NAME: matching(
    /^[\w.-]{1,100}$/,
    'must be 1 to 100 letters, digits, dots, hyphens or underscores',
  ).optional(),
  STATE_DIR: z.string().default(DEFAULTS.STATE_DIR),
  HTTP_HOST: matching(
    /^[\w.:-]+$/,
    'must be a host name or an IP address, without a port or brackets',
  ).default(DEFAULTS.HTTP_HOST),
  HTTP_PORT: integerSetting(0, 65_535).default(DEFAULTS.HTTP_PORT),
  LOG_LEVEL: oneOf(LOG_LEVELS).default(DEFAULTS.LOG_LEVEL),
});
export type Settings = z.output<typeof SCHEMA>;
export type Name = keyof Settings;

export function itemsOf(text: string): string[] {
  const all = text.split(',').map((item) => item.trim());
  return [...new Set(all.filter((item) => item !== ''))];
}

/** Name of the setting that lists the key fields of a list. */
export function keyFieldsSetting(resource: Resource): Name {
  return `KEY_FIELDS_${resource.toUpperCase().replaceAll('-', '_')}` as Name;
}

function secretText<T extends z.ZodType<string>>(text: T) {
  return text.transform((value) => new Secret(value));
}

/** Whether the text contains valid certificates only: Node silently ignores text that is not one. */
function holdsCertificates(text: string): boolean {
  const [, ...parts] = text.split('-----BEGIN CERTIFICATE-----');
  return parts.length > 0 && parts.every((part) => isCertificate(part));
}

function isCertificate(part: string): boolean {
  try {
    return Boolean(new X509Certificate(`-----BEGIN CERTIFICATE-----${part}`));
  } catch {
    return false;
  }
}

export function isResource(text: string): text is Resource {
  return RESOURCES.some((resource) => resource === text);
}
