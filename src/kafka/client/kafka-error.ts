// Converts errors of kafkajs and of brokers to CellarstreamErrors, with advice: which setting to check, and whether a retry may succeed.

import kafkajs from 'kafkajs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import type { ErrorCode } from '../../core/errors.ts';
import { tlsError } from '../../core/tls-error.ts';
import { MalformedBytes } from '../fetch/codecs.ts';
import { kafkajsCauseOf } from './protocol.ts';

/** Kafka's error types for a producer that was replaced by a newer one, or whose transaction timed out. */
const EPOCH_ERRORS = ['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'INVALID_PRODUCER_ID_MAPPING'];

/** Message of kafkajs' plain `Error` when a broker accepted the connection, but did not answer ApiVersions in time. */
const NOT_CONNECTED = 'Broker not connected';

/** Kafka's error types that no retry can resolve, each with advice for the error message. */
const FINAL_ERRORS: Readonly<Record<string, string>> = {
  SASL_AUTHENTICATION_FAILED: 'check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD',
  UNSUPPORTED_SASL_MECHANISM: 'check KAFKA_SASL_MECHANISM',
  TOPIC_AUTHORIZATION_FAILED: 'the ACLs must allow this user to create, read and write the topics',
  CLUSTER_AUTHORIZATION_FAILED: 'the ACLs must allow this user to describe the cluster',
  GROUP_AUTHORIZATION_FAILED: 'the ACLs must allow this user to read its group',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    'the ACLs must allow this user to write with the transactional ids cellarstream.*',
  INVALID_REPLICATION_FACTOR: 'set TOPIC_REPLICATION to no more than the number of brokers',
  INVALID_TOPIC_EXCEPTION:
    'the name of a topic is not allowed, or is that of an internal topic: set another TOPIC_PREFIX',
  INVALID_REQUIRED_ACKS: 'a topic refuses messages with acks=all: check its settings',
  INVALID_TIMESTAMP:
    "messages are too old or too new for a topic: check this machine's clock, and the topic's message.timestamp.* settings",
  UNSUPPORTED_VERSION: 'KAFKA_BROKERS must be Kafka 2.7 or newer',
  INVALID_REQUEST: 'KAFKA_BROKERS must be Kafka 2.7 or newer, or fully compatible with it',
  UNSUPPORTED_FOR_MESSAGE_FORMAT:
    'a topic has a message format from before Kafka 0.11: unset its message.format.version',
  POLICY_VIOLATION: "the cluster's policy forbids it: ask the operator of the cluster",
  INVALID_TRANSACTION_TIMEOUT: "set the brokers' transaction.max.timeout.ms to 60000 or more",
  UNSUPPORTED_COMPRESSION_TYPE:
    'a topic does not accept gzip: set its compression.type to producer',
  INVALID_RECORD:
    'a topic refused a message: compacted topics accept no messages without a key, and brokers may validate values',
};

const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

const SERVER = {
  address: 'KAFKA_BROKERS (and advertised.listeners of the brokers)',
  ca: 'KAFKA_SSL_CA_FILE',
  clientCertificate: { cert: 'KAFKA_SSL_CERT_FILE', key: 'KAFKA_SSL_KEY_FILE' },
  plainTextAdvice: 'set KAFKA_SSL=false, or the TLS port in KAFKA_BROKERS',
} as const;

/**
 * Patterns that match errors of failed connections, each with a hint at the setting that is likely wrong. The errors are retried, because
 * brokers also close connections while they shut down.
 */
const CONNECTION_HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /^Closed connection$|ECONNRESET|EPIPE/,
    'if this persists, the port may require TLS (KAFKA_SSL), a client certificate (KAFKA_SSL_CERT_FILE) or a login (KAFKA_SASL_MECHANISM)',
  ],
  [
    /before secure TLS connection was established/,
    'if this persists, the port may not use TLS: set KAFKA_SSL=false, or the TLS port in KAFKA_BROKERS',
  ],
  [
    /not valid given the current SASL state/,
    'the port accepts no login: unset KAFKA_SASL_MECHANISM, or set the port with SASL in KAFKA_BROKERS',
  ],
  [
    /Connection closed by the server/, // during a login
    'if this persists, check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD',
  ],
  [
    /Failed to find group coordinator/, // kafkajs does not say when the broker refused the request
    'if this persists, check that the ACLs allow this user to write with the transactional ids cellarstream.*, and to read its group',
  ],
  [
    /the response of \S+ to \w+ (can't be decoded|lacks)/,
    'if this persists, check whether a proxy alters the responses of the brokers',
  ],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|Connection timeout/,
    'if this persists, check KAFKA_BROKERS',
  ],
];

const NOT_ENOUGH_IN_SYNC =
  "fewer replicas are in sync than the topic's min.insync.replicas: restart the missing brokers, or lower the setting";

/** Kafka's error types that a retry may resolve, each with advice in case the error persists. */
const TRANSIENT_ERRORS: Readonly<Record<string, string>> = {
  COORDINATOR_NOT_AVAILABLE:
    "if this persists, brokers are missing, or the brokers' transaction.state.log.replication.factor, transaction.state.log.min.isr or offsets.topic.replication.factor exceeds the number of brokers",
  GROUP_COORDINATOR_NOT_AVAILABLE:
    "if this persists, brokers are missing, or the brokers' offsets.topic.replication.factor exceeds the number of brokers",
  NOT_ENOUGH_REPLICAS: NOT_ENOUGH_IN_SYNC,
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: NOT_ENOUGH_IN_SYNC,
  LEADER_NOT_AVAILABLE: 'if this persists, all brokers with a replica of the partition are down',
  UNKNOWN_TOPIC_OR_PARTITION: 'if this persists, the topic was deleted',
  KAFKA_STORAGE_ERROR:
    "if this persists, a broker can't write to its disk: check the disks of the brokers",
  THROTTLING_QUOTA_EXCEEDED: 'if this persists, raise the Kafka quota of this client',
};

/**
 * End of the message of a `COMMIT_FAILED` error if the broker refused the producer's epoch as outdated. Names both possible causes, because
 * brokers use the same error type for them.
 */
const OUTDATED =
  ' (another producer has opened the transactional id, or the transaction timed out)';

/** Matches the messages of logins that were interrupted. kafkajs uses one error class for interrupted and refused logins. */
const INTERRUPTED = /Closed connection|closed by the server|Connection (error|timeout)|timed out/;

/**
 * Converts an error of kafkajs (or a `CallNotSent` or `CallUnanswered` with such a cause) to a CellarstreamError. Returns any other error
 * unchanged. The code of the CellarstreamError is
 *
 * - `KAFKA_REFUSED`, which is final, if credentials, rights or settings are wrong;
 * - `TOPIC_SETTINGS` if a batch is too large for its topic;
 * - `TLS_REFUSED`, which is final, if the TLS connection failed because of this process's settings;
 * - otherwise `code`, which is retried.
 *
 * After a failed login with a token, the login's CellarstreamError may be returned instead.
 */
export function kafkaError(thrown: unknown, code: ErrorCode = 'KAFKA_UNREACHABLE'): unknown {
  const error = kafkajsCauseOf(thrown);
  if (error instanceof CellarstreamError || !isKafkajsError(error)) return error;
  const all = withCauses(error);
  const ours = loginErrorIn(all);
  if (ours && (code === 'KAFKA_UNREACHABLE' || !isRetryable(ours))) return ours;
  const advice = ours ? undefined : all.map(adviceOf).find(Boolean);
  if (advice !== undefined) {
    const isOfTopic = all.some((at) => typeOf(at) === 'TOPIC_AUTHORIZATION_FAILED');
    return new CellarstreamError('KAFKA_REFUSED', `Kafka refuses: ${advice}`, {
      cause: error,
      ...(isOfTopic && { context: { concerns: 'topic' } }),
    });
  }
  const tooLarge = all.find((at) => TOO_LARGE.has(typeOf(at)));
  if (tooLarge) {
    return new CellarstreamError(
      'TOPIC_SETTINGS',
      `a batch of messages is larger than its topic accepts (${tooLarge.message}): raise max.message.bytes of the topic, and segment.bytes if that is smaller`,
      { cause: error },
    );
  }
  const insecure = all
    .map((at) => tlsError(at, { ...SERVER, who: brokerNameOf(at), unreachable: code }))
    .find(Boolean);
  if (insecure) return insecure;
  const epoch = isEpochError(error);
  const advised = all.map((at) => TRANSIENT_ERRORS[typeOf(at)]).find(Boolean);
  const what =
    code === 'COMMIT_FAILED'
      ? `a Kafka transaction failed${epoch ? OUTDATED : advised ? ` (${advised})` : ''}`
      : (connectionFailureText(all) ?? brokerErrorText(all) ?? 'no answer from Kafka');
  return new CellarstreamError(code, what, { cause: error, context: { epoch } });
}

/** Returns the CellarstreamError of a failed `bearerLogin`, if `errors` (an error of kafkajs and its causes) contains one. */
function loginErrorIn(errors: readonly Error[]): CellarstreamError | undefined {
  return errors.find((each) => each instanceof CellarstreamError);
}

function brokerNameOf(error: Error): string {
  return 'broker' in error && typeof error.broker === 'string'
    ? `Kafka at ${error.broker}`
    : 'Kafka';
}

/**
 * Returns the error text for a connection that failed in one of the ways in {@link CONNECTION_HINTS}; undefined if none of their patterns
 * matches.
 */
function connectionFailureText(errors: readonly Error[]): string | undefined {
  const known = CONNECTION_HINTS.find(([pattern]) =>
    errors.some(({ message }) => pattern.test(message)),
  );
  return known && `no answer from Kafka (${known[1]})`;
}

/** Returns the error text for the first of the `errors` that has an error type of Kafka; undefined if none of them has one. */
function brokerErrorText(errors: readonly Error[]): string | undefined {
  const type = errors.map(typeOf).find(Boolean);
  if (type === undefined) return undefined;
  const advice = TRANSIENT_ERRORS[type];
  return `Kafka answers ${type}${advice ? ` (${advice})` : ''}`;
}

/**
 * Converts the error that ended a member of a consumer group, as {@link kafkaError} does, but with the code `KAFKA_REFUSED` also if a batch
 * was malformed or if a new member would fail in the same way.
 */
export function memberError(error: unknown, groupId: string): unknown {
  const malformed = withCauses(error).find((each) => each instanceof MalformedBytes);
  if (malformed) {
    return new CellarstreamError(
      'KAFKA_REFUSED',
      `the group ${groupId} stopped, because a batch of its topic can't be read (${malformed.message}): to skip the batch, set the group's offset of the partition that no longer advances to the first offset after the batch`,
      { cause: error },
    );
  }
  const known = kafkaError(error);
  const passing = known instanceof CellarstreamError && known.code === 'KAFKA_UNREACHABLE';
  if (!passing || loginErrorIn(withCauses(error)) || isRetryableForMember(error)) return known;
  return new CellarstreamError(
    'KAFKA_REFUSED',
    `Kafka does not let this process join or stay in the consumer group ${groupId}. Joining again would fail in the same way, so the process does not try it: see the cause`,
    { cause: error },
  );
}

/** Whether the error says that kafkajs found no coordinator of a Kafka group. It does not say why. */
export function isCoordinatorMissing(error: unknown): boolean {
  return withCauses(error).some((each) => each instanceof kafkajs.KafkaJSGroupCoordinatorNotFound);
}

/** Whether the broker refused the producer's epoch as outdated: the producer was fenced, or its transaction timed out. */
export function isEpochError(error: unknown): boolean {
  const isOurs = (at: Error) => at instanceof CellarstreamError && at.context.epoch === true;
  return hasErrorType(error, ...EPOCH_ERRORS) || withCauses(error).some(isOurs);
}

/** Whether the error, or one of its causes, is kafkajs' error for one of these error types of Kafka, such as `UNSUPPORTED_VERSION`. */
export function hasErrorType(error: unknown, ...types: readonly string[]): boolean {
  return withCauses(error).some((at) => types.includes(typeOf(at)));
}

function isKafkajsError(error: unknown): error is Error {
  const { KafkaJSError, KafkaJSAggregateError } = kafkajs;
  if (error instanceof KafkaJSError || error instanceof KafkaJSAggregateError) return true;
  return error instanceof Error && error.message === NOT_CONNECTED;
}

function adviceOf(error: Error): string | undefined {
  if (error instanceof kafkajs.KafkaJSSASLAuthenticationError) {
    if (INTERRUPTED.test(error.message)) return undefined;
    const wrong = error.message.includes('mechanism is not supported')
      ? 'UNSUPPORTED_SASL_MECHANISM'
      : 'SASL_AUTHENTICATION_FAILED';
    return FINAL_ERRORS[wrong];
  }
  return FINAL_ERRORS[typeOf(error)];
}

function typeOf(error: Error): string {
  return 'type' in error && typeof error.type === 'string' ? error.type : '';
}

/** Returns the error, its causes, and all errors inside an aggregate error. */
function withCauses(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  const gathered = error instanceof kafkajs.KafkaJSAggregateError ? error.errors : [];
  return [error, ...gathered.flatMap(withCauses), ...withCauses(error.cause)];
}

/**
 * Whether a new member of the consumer group may succeed after this error. Follows kafkajs' rule for restarting a consumer, and also
 * retries after a missing coordinator.
 */
function isRetryableForMember(error: unknown): boolean {
  if (error instanceof kafkajs.KafkaJSNumberOfRetriesExceeded) return true;
  if (isCoordinatorMissing(error)) return true;
  let origin = error;
  while (origin instanceof Error && origin.cause instanceof Error) origin = origin.cause;
  if (origin instanceof kafkajs.KafkaJSError) return origin.retriable;
  return origin === error; // a plain `Error`: the broker did not respond
}
