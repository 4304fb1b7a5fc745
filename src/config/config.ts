import type { ClientCredentials } from '../core/client-tokens.ts';
import type { CredentialName } from '../description/credentials.ts';
import type { ApiDescription, Resource } from '../description/description.ts';
import type { Proxies } from '../core/proxies.ts';
import type { Secret } from '../core/secret.ts';
import type { FieldPointer } from './setting-parsers.ts';
import type { LogLevel, Need } from './settings.ts';

export type { Resource } from '../description/description.ts';
export { LOG_LEVELS } from './settings.ts';
export type { FieldPointer } from './setting-parsers.ts';
export type { LogLevel, Need } from './settings.ts';
export type { ClientCredentials } from '../core/client-tokens.ts';

/** Settings of the API and its login. */
export interface ApiConfig {
  /** Base URL of the API, without a trailing `/`. The request paths in the API description are appended to it. */
  readonly baseUrl: string;
  /** Address of the login or the OAuth 2 token endpoint; not used if the API has no login. */
  readonly loginUrl: string;
  /** The credentials that the API description uses, by their names in the description, such as `api_key`. */
  readonly credentials: Readonly<Partial<Record<CredentialName, Secret>>>;
  /** How long the API may refuse credentials that it accepted before, in ms, until the refusal counts as final. */
  readonly keyPatienceMs: number;
  /** PEM text of the certificate authorities to trust instead of Node's own. */
  readonly ca: string | undefined;
  /** Values of the parameters that the API description declares, by name. Absent if it declares none. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** HTTP proxies. Default: direct connections. */
  readonly proxies?: Proxies | undefined;
}

/** A certificate that a client presents to a server, with its private key; both are in PEM. */
export interface ClientCertificate {
  /** PEM text of the client certificate, followed by its intermediate certificates. */
  readonly cert: string;
  readonly key: Secret;
  /** Password of the private key; undefined if the private key is not encrypted. */
  readonly password: Secret | undefined;
}

/** How to authenticate to the Kafka brokers (SASL). */
export type KafkaLogin =
  | {
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
      readonly username: string;
      readonly password: Secret;
    }
  | {
      readonly mechanism: 'oauthbearer';
      readonly credentials: ClientCredentials;
      /** SASL extensions sent to the brokers with each token; managed services use them to name clusters and identity pools. */
      readonly extensions: Readonly<Record<string, string>>;
    }
  | { readonly mechanism: 'aws-msk-iam'; readonly region: string };

/** Settings of the Kafka brokers, and how to log in. */
export interface KafkaConfig {
  /** Addresses of the brokers, `host:port`; at least one. */
  readonly brokers: readonly string[];
  /** TLS settings; false for plain text. Without a `ca`, Node's own certificate authorities are trusted. */
  readonly ssl:
    false | { readonly ca: string | undefined; readonly client: ClientCertificate | undefined };
  readonly sasl: KafkaLogin | undefined;
  /** HTTP proxies for the OAuth token endpoint only: brokers are connected to directly. Default: direct connections. */
  readonly proxies?: Proxies | undefined;
}

/** Credentials for requests to the schema registry. */
export type RegistryAuth =
  | { readonly kind: 'basic'; readonly username: string; readonly password: Secret }
  /** A bearer token that does not change while the process runs. */
  | { readonly kind: 'bearer'; readonly token: Secret }
  /** Bearer tokens from an OAuth 2 token endpoint, renewed before they expire. */
  | { readonly kind: 'oauth'; readonly credentials: ClientCredentials };

/** Settings of the schema registry, and how to log in. */
export interface RegistryConfig {
  /** Address of the registry, without a trailing `/`. */
  readonly url: string;
  /** Credentials; undefined for a registry without a login, or one that authenticates by `client` or `headers` alone. */
  readonly auth: RegistryAuth | undefined;
  /** Additional headers of each request to the schema registry, by lower-case name. */
  readonly headers: Readonly<Record<string, Secret>>;
  /** PEM text of the certificate authorities to trust instead of Node's own. */
  readonly ca: string | undefined;
  readonly client: ClientCertificate | undefined;
  /** HTTP proxies. Default: direct connections. */
  readonly proxies?: Proxies | undefined;
}

/** Record fields that hold personal data, in one list for each way of hiding them. No field is in two lists. */
export interface PiiConfig {
  readonly drop: readonly FieldPointer[];
  readonly mask: readonly FieldPointer[];
  readonly hmac: readonly FieldPointer[];
  /** Key of the HMAC that hides fields; set whenever `hmac` names a field. */
  readonly hmacKey: Secret | undefined;
}

/** The validated settings; deeply frozen. Durations are in milliseconds. */
export interface Config {
  /** Description of the API: how to log in, and its lists. */
  readonly description: ApiDescription;
  /** Absolute path of the file that `MEASURED` names (output of `cellarstream check --measure`). Absent if `MEASURED` is not set. */
  readonly measuredFile?: string;
  /** Settings of the API; undefined unless its address, credentials and parameters are set. */
  readonly api: ApiConfig | undefined;
  readonly kafka: KafkaConfig | undefined;
  readonly registry: RegistryConfig | undefined;
  readonly account: string;
  readonly topics: {
    /** Prefix of the account's own topics: records, status changes, dead letters. */
    readonly prefix: string;
    /** Prefix of the topics that all accounts of a fleet share, such as cursors, signals and certificates. Without a fleet: `prefix`. */
    readonly sharedPrefix: string;
    readonly partitions: number;
    /** Replication factor of the topics. Undefined: 3, or the number of brokers if that is smaller. */
    readonly replication: number | undefined;
  };
  readonly resources: readonly Resource[];
  readonly poll: {
    /** Time between polls of a list, or between sweeps of a list without dates, in ms. Undefined: as often as the quota allows. */
    readonly intervalMs: number | undefined;
    readonly lookbackMs: number;
    readonly sweepIntervalMs: number;
    /**
     * Time in epoch ms: records that were last modified before it are left out, unless they were published earlier. Has no effect on lists
     * without dates. Undefined: no record is left out.
     */
    readonly startFrom: number | undefined;
    readonly pageSize: number;
    /**
     * Percentage of a list's keys, 0 to 100. Deletions are held back if too many keys go missing between two full scans:
     *
     * - more than 20 keys that are more than this percentage of the list, or
     * - more than 2 keys that are more than a third of the list.
     *
     * At 100, no deletions are held back.
     */
    readonly deleteLimitPercent: number;
    /** How long a record has to stay missing from the list before its deletion is published, in ms. */
    readonly deleteProofMs: number;
  };
  /** Shortest time between two certificates of a list, in ms. It does not apply to certificates that a user requests. */
  readonly certificateIntervalMs: number;
  readonly quota: {
    readonly perMinute: number;
    readonly loginsPerMinute: number;
    /** How the server counts requests against the quota: for each list separately, or for all lists of an API key together. */
    readonly scope: 'endpoint' | 'key';
    /**
     * Percentage of the API's quota that an initial snapshot gets, 1 to 95. Polls get the rest; the snapshot also gets the requests that
     * polls leave unused.
     */
    readonly firstReadPercent: number;
  };
  readonly pii: PiiConfig;
  /** Record fields whose changes cause no event unless another field changes, too. */
  readonly volatileFields: readonly FieldPointer[];
  /** How the keys of records are encoded in Kafka. */
  readonly keyFormat: 'text' | 'avro';
  /** Key fields of the records, for each list: the value of its setting `KEY_FIELDS_<LIST>`. Undefined for a list without that setting. */
  readonly keyFields: Readonly<Record<Resource, readonly string[] | undefined>>;
  /** Absolute path of the folder with the files of a fleet's accounts. Undefined: these settings are those of a single account. */
  readonly accountsDir: string | undefined;
  /** Name of this process in a fleet. Undefined: the host's name and a random suffix. */
  readonly instanceName: string | undefined;
  /** Absolute path of the state folder. */
  readonly stateDir: string;
  readonly http: { readonly host: string; readonly port: number };
  readonly logLevel: LogLevel;
}

/** A {@link Config} in which the groups of settings named by `N` (`api`, `kafka`, `registry`) are set. */
export type ConfigWith<N extends Need> = Config & {
  readonly [K in N]: NonNullable<Config[K]>;
};
