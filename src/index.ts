/**
 * Runs the service from a program: the function `run`, its settings, its errors, and hooks that report what the service does. Topics are
 * read with `cellarstream/consume`, pipelines are built with `cellarstream/streams`, bytes are decoded and encoded with
 * `cellarstream/schemas`, and `cellarstream/sandbox` is a local API for trying the service out.
 *
 * @module cellarstream
 */

// Start here
export { run } from './app.ts';
export { loadConfig } from './config/load-config.ts';

// The service
export type { RunOptions } from './app.ts';

// Settings
export type { CredentialName } from './description/credentials.ts';
export type { ConfigOptions } from './config/load-config.ts';
export type {
  ApiConfig,
  ClientCertificate,
  ClientCredentials,
  Config,
  ConfigWith,
  FieldPointer,
  KafkaConfig,
  KafkaLogin,
  LOG_LEVELS,
  LogLevel,
  Need,
  PiiConfig,
  RegistryAuth,
  RegistryConfig,
  Resource,
} from './config/config.ts';
export type { Secret } from './core/secret.ts';

// Errors
export { CellarstreamError, describeError } from './core/errors.ts';
export type { ErrorCode, ErrorContext } from './core/errors.ts';

// Hooks
export type {
  Committed,
  Gauges,
  Hooks,
  Lane,
  Progress,
  Published,
  QuotaUse,
  Requested,
  Resynced,
  Retrying,
  Uncertified,
} from './observe/hooks.ts';
export type { Gap, KeyGap, LostEvents } from './observe/lost-events.ts';
export type { DatesFound, NoDates } from './streams/paging/list-dates.ts';
export type { TopicFinding } from './schemas/events/topic-findings.ts';
export type {
  KeyedStatusChange,
  StatusChange as RecordStatusChange,
} from './streams/diff/status-changes.ts';
export type { Proof } from './streams/paging/sweep-progress.ts';
