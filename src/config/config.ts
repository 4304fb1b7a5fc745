import type { ClientCredentials } from '../core/client-tokens.ts';
import type { Resource } from '../resources/resources.ts';
import type { Proxies } from '../core/proxies.ts';
import type { Secret } from '../core/secret.ts';
import type { FieldPointer, LogLevel } from './settings.ts';

export { RESOURCES } from '../resources/resources.ts';
export type { Resource } from '../resources/resources.ts';
export { SETTINGS } from './setting-texts.ts';
export { DEFAULTS, LOG_LEVELS } from './settings.ts';
export type { FieldPointer, LogLevel } from './settings.ts';
export type { ClientCredentials } from '../core/client-tokens.ts';

/** The API and its login. */
export interface ApiConfig {
  /** Without a trailing `/` or `/v1`: lists are at `<baseUrl>/v1/<resource>`. */
  readonly baseUrl: string;
  readonly loginUrl: string;
  readonly key: Secret;
  /** So long may a key be refused that was accepted before. */
  readonly keyPatienceMs: number;
  /** PEM text of the authorities to trust in place of Node's own. */
  readonly ca: string | undefined;
  /** Default: direct connections. */
  readonly proxies?: Proxies | undefined;
}

/** A certificate that a client shows to a server, in PEM. */
export interface ClientCertificate {
  /** The certificate, and those between it and its authority. */
  readonly cert: string;
  readonly key: Secret;
  /** Undefined where the key is not encrypted. */
  readonly password: Secret | undefined;
}

/** A login at Kafka's brokers (SASL). */
export type KafkaLogin =
  | {
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
      readonly username: string;
      readonly password: Secret;
    }
  | {
      readonly mechanism: 'oauthbearer';
      readonly credentials: ClientCredentials;
      /** Sent with each token; managed services name clusters and pools by them. */
      readonly extensions: Readonly<Record<string, string>>;
    }
  | { readonly mechanism: 'aws-msk-iam'; readonly region: string };

/** The brokers, and how to log in. */
export interface KafkaConfig {
  /** Each `host:port`; at least one. */
  readonly brokers: readonly string[];
  /** False for plain text; without a `ca`, Node's own authorities are trusted. */
  readonly ssl:
    false | { readonly ca: string | undefined; readonly client: ClientCertificate | undefined };
  readonly sasl: KafkaLogin | undefined;
  /** For the token endpoint alone: brokers are reached directly. Default: direct connections. */
  readonly proxies?: Proxies | undefined;
}

/** How requests to the schema registry are authorized. */
export type RegistryAuth =
  | { readonly kind: 'basic'; readonly username: string; readonly password: Secret }
  /** A bearer token that does not change while the process runs. */
  | { readonly kind: 'bearer'; readonly token: Secret }
  /** Bearer tokens of an OAuth 2 token endpoint, renewed before they expire. */
  | { readonly kind: 'oauth'; readonly credentials: ClientCredentials };

/** The schema registry, and how to log in. */
export interface RegistryConfig {
  /** Without a trailing `/`. */
  readonly url: string;
  /** The credentials; undefined for a registry that needs no login, or one that goes by a client certificate. */
  readonly auth: RegistryAuth | undefined;
  /** Further headers of each request, by their names in lower case. */
  readonly headers: Readonly<Record<string, Secret>>;
  /** PEM text of the authorities to trust in place of Node's own. */
  readonly ca: string | undefined;
  readonly client: ClientCertificate | undefined;
  /** Default: direct connections. */
  readonly proxies?: Proxies | undefined;
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
    /** Of the account's own topics: records, status changes, dead letters. */
    readonly prefix: string;
    /** Of what all accounts of a fleet share: cursors, ledger, signals. The same without a fleet. */
    readonly sharedPrefix: string;
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
    /** How long what is absent has to stay so before it is deleted. */
    readonly deleteProofMs: number;
  };
  /** Least time from one certificate of a list to the next. */
  readonly certificateIntervalMs: number;
  readonly quota: {
    readonly perMinute: number;
    readonly loginsPerMinute: number;
    /** What the server counts by: each list on its own, or all lists of a key together. */
    readonly scope: 'endpoint' | 'key';
    /** What an initial snapshot has of `perMinute`; polls have the rest. 1 to 95. */
    readonly firstReadPercent: number;
  };
  readonly pii: PiiConfig;
  /** Fields whose change alone is no event. */
  readonly volatileFields: readonly FieldPointer[];
  /** How the keys of records are written to Kafka. */
  readonly keyFormat: 'text' | 'avro';
  /** The fields that make a record's key, where they are set. */
  readonly keyFields: Readonly<Record<Resource, readonly string[] | undefined>>;
  /** An absolute path: the files of a fleet's accounts. Undefined where there is one account, of these very settings. */
  readonly accountsDir: string | undefined;
  /** Names this process in a fleet. Undefined: by its host, and at random. */
  readonly instanceName: string | undefined;
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
