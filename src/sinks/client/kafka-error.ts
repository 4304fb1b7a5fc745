// Errors of kafkajs and of brokers as ours, with advice: which setting to check, and whether a later try may succeed.

import kafkajs from 'kafkajs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import type { ErrorCode } from '../../core/errors.ts';
import { tlsError } from '../../core/tls-error.ts';
import { MalformedBytes } from '../fetch/codecs.ts';

/** Error types for a producer that was replaced by a newer one, or whose transaction timed out. */
const EPOCH_ERRORS = new Set([
  'INVALID_PRODUCER_EPOCH',
  'PRODUCER_FENCED',
  'INVALID_PRODUCER_ID_MAPPING',
]);

/** Message of kafkajs' plain `Error` when a broker accepted the connection, but did not answer ApiVersions in time. */
const NOT_CONNECTED = 'Broker not connected';

/** Error types that a retry cannot heal, with advice. */
const REFUSALS: Readonly<Record<string, string>> = {
  SASL_AUTHENTICATION_FAILED: 'check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD',
  UNSUPPORTED_SASL_MECHANISM: 'check KAFKA_SASL_MECHANISM',
  TOPIC_AUTHORIZATION_FAILED: 'its ACLs must let this user make, read and write the topics',
  CLUSTER_AUTHORIZATION_FAILED: 'its ACLs must let this user describe the cluster',
  GROUP_AUTHORIZATION_FAILED: 'its ACLs must let this user read its own group',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    'its ACLs must let this user write with the transactional id cellarstream.*',
  INVALID_REPLICATION_FACTOR: 'set TOPIC_REPLICATION to no more than the number of brokers',
  INVALID_TOPIC_EXCEPTION:
    'a topic may not have that name, or is internal: set another TOPIC_PREFIX',
  INVALID_REQUIRED_ACKS: 'a topic refuses messages with acks=all: check its settings',
  INVALID_TIMESTAMP:
    "messages are too old or too new for a topic: check this machine's clock, and the topic's message.timestamp.* settings",
  UNSUPPORTED_VERSION: 'KAFKA_BROKERS must be Kafka 2.7 or newer',
  INVALID_REQUEST: 'KAFKA_BROKERS must be Kafka 2.7 or newer, or fully compatible with it',
  UNSUPPORTED_FOR_MESSAGE_FORMAT:
    'a topic keeps a format from before Kafka 0.11: unset its message.format.version',
  POLICY_VIOLATION: "the cluster's policy forbids it: ask who runs the cluster",
  INVALID_TRANSACTION_TIMEOUT: "set the brokers' transaction.max.timeout.ms to 60000 or more",
  UNSUPPORTED_COMPRESSION_TYPE: 'a topic takes no gzip: set its compression.type to producer',
  INVALID_RECORD:
    'a topic refused a message: a compacted topic takes none without a key, and brokers may check values',
};

const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

const SERVER = {
  address: 'KAFKA_BROKERS (and what the brokers advertise)',
  ca: 'KAFKA_SSL_CA_FILE',
  clientCertificate: { cert: 'KAFKA_SSL_CERT_FILE', key: 'KAFKA_SSL_KEY_FILE' },
  ifPlain: 'set KAFKA_SSL to false, or give KAFKA_BROKERS the port that does',
} as const;

/**
 * Messages of failed connections, with a hint at a likely setting. Brokers close connections whose protocol they do not expect, but also while
 * they shut down, so these errors are retried.
 */
const HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /^Closed connection$|ECONNRESET|EPIPE/,
    'if this goes on, its port may want TLS (KAFKA_SSL), a client certificate (KAFKA_SSL_CERT_FILE) or a login (KAFKA_SASL_MECHANISM)',
  ],
  [
    /before secure TLS connection was established/,
    'if this goes on, its port may speak no TLS: set KAFKA_SSL to false, or give KAFKA_BROKERS the port that does',
  ],
  [
    /not valid given the current SASL state/,
    'its port takes no login: unset KAFKA_SASL_MECHANISM, or give KAFKA_BROKERS the port that does',
  ],
  [
    /Connection closed by the server/, // during a login
    'if this goes on, check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD',
  ],
  [
    /Failed to find group coordinator/, // kafkajs does not say when the broker refused the request
    'if this goes on, its ACLs must let this user write with the transactional id cellarstream.*, or read its own group',
  ],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|Connection timeout/,
    'if this goes on, check KAFKA_BROKERS',
  ],
];

/** Error types that may pass, with advice in case they do not. */
const WAITS: Readonly<Record<string, string>> = {
  COORDINATOR_NOT_AVAILABLE:
    "if this goes on, brokers are missing, or the brokers' transaction.state.log.replication.factor, transaction.state.log.min.isr or offsets.topic.replication.factor is more than their number",
  GROUP_COORDINATOR_NOT_AVAILABLE:
    "if this goes on, brokers are missing, or the brokers' offsets.topic.replication.factor is more than their number",
  NOT_ENOUGH_REPLICAS:
    "the topic's min.insync.replicas is more than the copies that are in sync: bring the missing brokers back, or lower it",
  NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    "the topic's min.insync.replicas is more than the copies that are in sync: bring the missing brokers back, or lower it",
  LEADER_NOT_AVAILABLE: 'if this goes on, all brokers that have a copy of the partition are away',
  UNKNOWN_TOPIC_OR_PARTITION: 'if this goes on, the topic was deleted',
  KAFKA_STORAGE_ERROR: "a broker can't write to its disk",
  THROTTLING_QUOTA_EXCEEDED: "a quota of the brokers' is used up",
};

/** Brokers use the same error type for both causes. */
const OUTDATED = ' (another producer has opened its transactional id since, or its time ran out)';

/** Messages of a login that was interrupted, not refused. kafkajs uses the same class for both. */
const INTERRUPTED = /Closed connection|closed by the server|Connection (error|timeout)|timed out/;

/**
 * Converts an error of kafkajs to a CellarstreamError. The code is `KAFKA_REFUSED` (final) if credentials, rights or settings are wrong,
 * `TLS_REFUSED` as decided by {@link tlsError}, `TOPIC_SETTINGS` if a batch is too large for its topic, and otherwise `code`, which is retried.
 * Other errors are returned unchanged.
 */
export function kafkaError(error: unknown, code: ErrorCode = 'KAFKA_UNREACHABLE'): unknown {
  if (error instanceof CellarstreamError || !isKafkas(error)) return error;
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
      `a batch of messages is larger than its topic takes (${tooLarge.message}): raise its max.message.bytes, and segment.bytes if that is smaller`,
      { cause: error },
    );
  }
  const insecure = all
    .map((at) => tlsError(at, { ...SERVER, who: whoOf(at), unreachable: code }))
    .find(Boolean);
  if (insecure) return insecure;
  const epoch = isEpochError(error);
  const advised = all.map((at) => WAITS[typeOf(at)]).find(Boolean);
  const what =
    code === 'COMMIT_FAILED'
      ? `a Kafka transaction failed${epoch ? OUTDATED : advised ? ` (${advised})` : ''}`
      : (unansweredText(all) ?? answeredText(all) ?? 'no answer from Kafka');
  return new CellarstreamError(code, what, { cause: error, context: { epoch } });
}

/** The first CellarstreamError among the errors: a token could not be fetched, or a broker refused it. */
function loginErrorIn(errors: readonly Error[]): CellarstreamError | undefined {
  return errors.find((each) => each instanceof CellarstreamError);
}

/** Name of the broker for messages; `Kafka` if kafkajs does not say which one. */
function whoOf(error: Error): string {
  return 'broker' in error && typeof error.broker === 'string'
    ? `Kafka at ${error.broker}`
    : 'Kafka';
}

/** Message for a connection that failed; undefined where the text of kafkajs' error does not say how. */
function unansweredText(errors: readonly Error[]): string | undefined {
  const known = HINTS.find(([pattern]) => errors.some(({ message }) => pattern.test(message)));
  return known && `no answer from Kafka (${known[1]})`;
}

/** Message for an error that a broker answered with; undefined where no broker did. */
function answeredText(errors: readonly Error[]): string | undefined {
  const type = errors.map(typeOf).find(Boolean);
  if (type === undefined) return undefined;
  const advice = WAITS[type];
  return `Kafka answers ${type}${advice ? ` (${advice})` : ''}`;
}

/** Converts the error that ended a group member: `KAFKA_UNREACHABLE` if a new member may succeed, else `KAFKA_REFUSED`. */
export function memberError(error: unknown, groupId: string): unknown {
  const malformed = withCauses(error).find((each) => each instanceof MalformedBytes);
  if (malformed) {
    return new CellarstreamError(
      'KAFKA_REFUSED',
      `a batch that the group ${groupId} has come to can't be read: ${malformed.message}`,
      { cause: error },
    );
  }
  const known = kafkaError(error);
  const passing = known instanceof CellarstreamError && known.code === 'KAFKA_UNREACHABLE';
  if (!passing || loginErrorIn(withCauses(error)) || canPass(error)) return known;
  return new CellarstreamError(
    'KAFKA_REFUSED',
    `Kafka refuses members of the group ${groupId}: see the cause`,
    {
      cause: error,
    },
  );
}

/** Whether kafkajs found no coordinator of a group. Its error does not have the brokers' answer. */
export function isWithoutCoordinator(error: unknown): boolean {
  return withCauses(error).some((each) => each instanceof kafkajs.KafkaJSGroupCoordinatorNotFound);
}

/** Whether the broker refused the producer as outdated (fenced). */
export function isEpochError(error: unknown): boolean {
  return withCauses(error).some(
    (at) =>
      EPOCH_ERRORS.has(typeOf(at)) ||
      (at instanceof CellarstreamError && at.context.epoch === true),
  );
}

/** Whether the brokers do not support a request, or not the version used here. */
export function isUnsupported(error: unknown): boolean {
  return withCauses(error).some((at) => typeOf(at) === 'UNSUPPORTED_VERSION');
}

function isKafkas(error: unknown): error is Error {
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
    return REFUSALS[wrong];
  }
  return REFUSALS[typeOf(error)];
}

function typeOf(error: Error): string {
  return 'type' in error && typeof error.type === 'string' ? error.type : '';
}

/** The error, its causes, and the errors of an aggregate, all flattened. */
function withCauses(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  const gathered = error instanceof kafkajs.KafkaJSAggregateError ? error.errors : [];
  return [error, ...gathered.flatMap(withCauses), ...withCauses(error.cause)];
}

/**
 * Whether a new member may succeed: the rule by which kafkajs restarts a consumer, extended to a missing coordinator, which kafkajs
 * treats as final.
 */
function canPass(error: unknown): boolean {
  if (error instanceof kafkajs.KafkaJSNumberOfRetriesExceeded) return true;
  if (isWithoutCoordinator(error)) return true;
  let origin = error;
  while (origin instanceof Error && origin.cause instanceof Error) origin = origin.cause;
  if (origin instanceof kafkajs.KafkaJSError) return origin.retriable;
  return origin === error; // a plain `Error`: the broker did not answer
}
