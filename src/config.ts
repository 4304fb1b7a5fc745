import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'dotenv';
import { CellarstreamError } from './errors.ts';
import { piiProblems } from './pii-problems.ts';
import type { Resource } from './resources.ts';
import type { Secret } from './secret.ts';
import { SCHEMA } from './settings.ts';
import type { FieldPointer, LogLevel, Name, Settings } from './settings.ts';

export { RESOURCES } from './resources.ts';
export type { Resource } from './resources.ts';
export { DEFAULTS, LOG_LEVELS } from './settings.ts';
export type { FieldPointer, LogLevel } from './settings.ts';

/** The API and its login. */
export interface ApiConfig {
  /** Without a trailing `/` or `/v1`: lists are at `<baseUrl>/v1/<resource>`. */
  readonly baseUrl: string;
  readonly loginUrl: string;
  readonly key: Secret;
  /** PEM text of the authorities to trust in place of Node's own. */
  readonly ca: string | undefined;
}

/** The brokers, and how to log in. */
export interface KafkaConfig {
  /** Each `host:port`; at least one. */
  readonly brokers: readonly string[];
  /** False for plain text; without a `ca`, Node's own authorities are trusted. */
  readonly ssl: false | { readonly ca: string | undefined };
  readonly sasl:
    | {
        readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
        readonly username: string;
        readonly password: Secret;
      }
    | undefined;
}

/** The schema registry, and how to log in. */
export interface RegistryConfig {
  /** Without a trailing `/`. */
  readonly url: string;
  readonly auth: { readonly username: string; readonly password: Secret } | undefined;
  /** PEM text of the authorities to trust in place of Node's own. */
  readonly ca: string | undefined;
}

/** The fields that hold personal data, and what becomes of each; no field is in two of the lists. */
export interface PiiConfig {
  readonly drop: readonly FieldPointer[];
  readonly mask: readonly FieldPointer[];
  readonly hmac: readonly FieldPointer[];
  /** There whenever `hmac` names a field. */
  readonly hmacKey: Secret | undefined;
}

/** The settings, checked; frozen all the way down. Lengths of time are in milliseconds. */
export interface Config {
  /** Undefined unless its required settings are there; see {@link loadConfig}. */
  readonly api: ApiConfig | undefined;
  readonly kafka: KafkaConfig | undefined;
  readonly registry: RegistryConfig | undefined;
  readonly account: string;
  readonly topics: {
    readonly prefix: string;
    readonly partitions: number;
    /** Undefined: the smaller of 3 and the number of brokers. */
    readonly replication: number | undefined;
  };
  readonly resources: readonly Resource[];
  readonly poll: {
    /** Undefined: as often as the quota allows. */
    readonly intervalMs: number | undefined;
    readonly lookbackMs: number;
    readonly sweepIntervalMs: number;
    /** Unix time in milliseconds before which nothing is read; undefined: everything is. */
    readonly startFrom: number | undefined;
    readonly pageSize: number;
    /** 0 to 100. */
    readonly deleteLimitPercent: number;
  };
  readonly quota: {
    readonly perMinute: number;
    readonly loginsPerMinute: number;
    /** What the server counts by: each list on its own, or all lists of a key together. */
    readonly scope: 'endpoint' | 'key';
  };
  readonly pii: PiiConfig;
  /** The fields that make a record's key, where they are set. */
  readonly keyFields: Readonly<Record<Resource, readonly string[] | undefined>>;
  /** An absolute path. */
  readonly stateDir: string;
  readonly http: { readonly host: string; readonly port: number };
  readonly logLevel: LogLevel;
}

/** What a command can't do without. */
export type Need = 'api' | 'kafka' | 'registry';

/** A {@link Config} in which the groups that were needed are there. */
export type ConfigWith<N extends Need> = Config & {
  readonly [K in N]: NonNullable<Config[K]>;
};

/** Where {@link loadConfig} finds the settings, and which it insists on. */
export interface ConfigOptions<N extends Need> {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where `.env` is looked for, and what relative paths start from. */
  readonly cwd: string;
  /** Groups whose required settings must be there. Default none. */
  readonly needs?: readonly N[];
}

/**
 * Reads the settings from the environment, and from `.env` for those that it leaves open. Empty
 * text counts as unset. A secret may be in a file that its `*_FILE` twin names.
 *
 * @throws CellarstreamError `SETTINGS`, with a line for everything that is wrong; no line holds the
 * value of a secret, of an address or of a path's content.
 */
export function loadConfig<N extends Need = never>(options: ConfigOptions<N>): ConfigWith<N> {
  const { env, cwd, needs = [] } = options;
  const problems: Problem[] = [];
  const texts = gather(env, cwd, problems);
  const parsed = SCHEMA.safeParse(texts);
  for (const { path, message } of parsed.error?.issues ?? []) {
    problems.push({ name: String(path[0]), advice: message });
  }
  problems.push(...missing(texts, needs), ...contradictions(texts));
  if (!parsed.success || problems.length > 0) throw settingsError(problems);
  return deepFreeze(assemble(parsed.data, cwd)) as ConfigWith<N>;
}

type Texts = Record<string, string | undefined>;
type Problem = { readonly name: string; readonly advice: string };

/** May be in a file that `<name>_FILE` names. */
const SECRETS = [
  'API_KEY',
  'KAFKA_SASL_PASSWORD',
  'SCHEMA_REGISTRY_PASSWORD',
  'PII_HMAC_KEY',
] as const satisfies readonly Name[];

/** What these hold is read from the file that they name. */
const CONTENTS = [
  'API_CA_FILE',
  'KAFKA_SSL_CA_FILE',
  'SCHEMA_REGISTRY_CA_FILE',
] as const satisfies readonly Name[];

/** The names of all settings there are, `*_FILE` twins included. */
export const SETTINGS: readonly string[] = [
  ...Object.keys(SCHEMA.shape),
  ...SECRETS.map((name) => `${name}_FILE`),
];

const REQUIRED: Record<Need, Partial<Record<Name, string>>> = {
  api: {
    API_BASE_URL: 'is not set: it is the address of the API, such as https://api.example',
    API_KEY:
      'is not set, nor API_KEY_FILE: the account owner makes a key in the admin settings, on the API access page',
  },
  kafka: { KAFKA_BROKERS: 'is not set: it is host:port of one or more brokers' },
  registry: {
    SCHEMA_REGISTRY_URL:
      'is not set: it is the address of the schema registry, such as http://127.0.0.1:8081',
  },
};

/** All settings as text: files are read, secrets taken from their twins, what is empty left out. */
function gather(env: Texts, cwd: string, problems: Problem[]): Texts {
  const read = (name: string, file: string): string | undefined => {
    try {
      return readFileSync(resolve(cwd, file), 'utf8');
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code ?? 'no reason given';
      if (name === '.env' && code === 'ENOENT') return undefined;
      problems.push({
        name,
        advice: `can't be read (${code}): check the path and who may read it`,
      });
      return undefined;
    }
  };
  const inFile = present(parse(read('.env', join(cwd, '.env')) ?? ''));
  const inEnv = present(env);
  for (const name of SECRETS) {
    const twin = `${name}_FILE`;
    // The two are one setting: where the environment has either, the file has no say.
    if (inEnv[name] ?? inEnv[twin]) {
      delete inFile[name];
      delete inFile[twin];
    }
  }
  const texts: Texts = { ...inFile, ...inEnv };
  for (const name of SECRETS) {
    const twin = `${name}_FILE`;
    const file = texts[twin];
    if (file === undefined) continue;
    if (texts[name] !== undefined) {
      problems.push({ name, advice: `and ${twin} are both set: keep one of them` });
      continue;
    }
    // What can't be read is reported as that: something stands in, or it would be missing as well.
    texts[name] = withoutLineEnd(read(twin, file) ?? '?'.repeat(16));
    if (texts[name] === '') problems.push({ name: twin, advice: 'names a file that is empty' });
  }
  for (const name of CONTENTS) {
    const file = texts[name];
    if (file !== undefined) texts[name] = read(name, file);
  }
  return texts;
}

/** What is not empty, less the spaces around it; a secret may begin or end with a space. */
function present(texts: Texts): Texts {
  const some: Texts = {};
  for (const [name, text = ''] of Object.entries(texts)) {
    if (text.trim() === '') continue;
    some[name] = SECRETS.some((secret) => secret === name) ? withoutLineEnd(text) : text.trim();
  }
  return some;
}

function withoutLineEnd(text: string): string {
  return text.replace(/[\r\n]+$/, '');
}

function missing(texts: Texts, needs: readonly Need[]): Problem[] {
  return [...new Set(needs)]
    .flatMap((need) => Object.entries(REQUIRED[need]))
    .filter(([name]) => texts[name] === undefined)
    .map(([name, advice]) => ({ name, advice }));
}

/** Settings that make no sense without another, or beside it. */
function contradictions(texts: Texts): Problem[] {
  const problems: Problem[] = [];
  const needs = (name: string, others: readonly string[], advice = 'it is not set') => {
    if (texts[name] === undefined) return;
    for (const other of others) {
      if (texts[other] === undefined) problems.push({ name, advice: `needs ${other}: ${advice}` });
    }
  };
  needs('KAFKA_SASL_MECHANISM', ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD']);
  needs('KAFKA_SASL_USERNAME', ['KAFKA_SASL_MECHANISM']);
  needs('KAFKA_SASL_PASSWORD', ['KAFKA_SASL_MECHANISM']);
  needs('SCHEMA_REGISTRY_USERNAME', ['SCHEMA_REGISTRY_PASSWORD']);
  needs('SCHEMA_REGISTRY_PASSWORD', ['SCHEMA_REGISTRY_USERNAME']);
  needs('PII_HMAC', ['PII_HMAC_KEY'], 'it is the key of the HMAC, and is not set');
  if (texts.KAFKA_SSL_CA_FILE !== undefined && texts.KAFKA_SSL !== 'true') {
    problems.push({ name: 'KAFKA_SSL_CA_FILE', advice: 'needs KAFKA_SSL=true' });
  }
  problems.push(...piiProblems(texts));
  for (const name of Object.keys(texts)) {
    if (!name.startsWith('KEY_FIELDS_') || SETTINGS.includes(name)) continue;
    const known = SETTINGS.filter((setting) => setting.startsWith('KEY_FIELDS_'));
    problems.push({ name, advice: `is of no resource: there are ${known.join(', ')}` });
  }
  return problems;
}

function settingsError(problems: readonly Problem[]): CellarstreamError {
  const count = problems.length === 1 ? '1 setting is' : `${problems.length} settings are`;
  const lines = problems.map(({ name, advice }) => `\n- ${name} ${advice}`);
  const settings = problems.map(({ name }) => name).join(',');
  return new CellarstreamError('SETTINGS', `${count} wrong:${lines.join('')}`, {
    context: { settings },
  });
}

function assemble(set: Settings, cwd: string): Config {
  return {
    api: apiOf(set),
    kafka: kafkaOf(set),
    registry: registryOf(set),
    account: set.ACCOUNT_NAME,
    topics: {
      prefix: set.TOPIC_PREFIX,
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
    },
    quota: {
      perMinute: set.QUOTA_PER_MINUTE,
      loginsPerMinute: set.LOGIN_QUOTA_PER_MINUTE,
      scope: set.QUOTA_SCOPE,
    },
    pii: {
      drop: set.PII_DROP,
      mask: set.PII_MASK,
      hmac: set.PII_HMAC,
      hmacKey: set.PII_HMAC_KEY,
    },
    keyFields: {
      orders: set.KEY_FIELDS_ORDERS,
      customers: set.KEY_FIELDS_CUSTOMERS,
      inventory: set.KEY_FIELDS_INVENTORY,
      'wine-clubs': set.KEY_FIELDS_WINE_CLUBS,
      'wine-club-members': set.KEY_FIELDS_WINE_CLUB_MEMBERS,
      products: set.KEY_FIELDS_PRODUCTS,
    },
    stateDir: resolve(cwd, set.STATE_DIR),
    http: { host: set.HTTP_HOST, port: set.HTTP_PORT },
    logLevel: set.LOG_LEVEL,
  };
}

function apiOf(set: Settings): ApiConfig | undefined {
  const { API_BASE_URL: baseUrl, API_KEY: key, API_LOGIN_URL, API_CA_FILE: ca } = set;
  if (baseUrl === undefined || key === undefined) return undefined;
  return { baseUrl, loginUrl: API_LOGIN_URL ?? `${baseUrl}/v1/auth/public/login`, key, ca };
}

function kafkaOf(set: Settings): KafkaConfig | undefined {
  if (set.KAFKA_BROKERS === undefined) return undefined;
  const { KAFKA_SASL_MECHANISM: mechanism } = set;
  const { KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = set;
  return {
    brokers: set.KAFKA_BROKERS,
    ssl: set.KAFKA_SSL === 'true' && { ca: set.KAFKA_SSL_CA_FILE },
    sasl: mechanism && username && password ? { mechanism, username, password } : undefined,
  };
}

function registryOf(set: Settings): RegistryConfig | undefined {
  const { SCHEMA_REGISTRY_URL: url, SCHEMA_REGISTRY_CA_FILE: ca } = set;
  if (url === undefined) return undefined;
  const { SCHEMA_REGISTRY_USERNAME: username, SCHEMA_REGISTRY_PASSWORD: password } = set;
  return { url, auth: username && password ? { username, password } : undefined, ca };
}

function deepFreeze<T extends object>(value: T): T {
  for (const part of Object.values(value) as unknown[]) {
    if (typeof part === 'object' && part !== null) deepFreeze(part);
  }
  return Object.freeze(value);
}
