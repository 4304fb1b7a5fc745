import kafkajs from 'kafkajs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import type { ErrorCode } from '../../core/errors.ts';
import { tlsError } from '../../core/tls-error.ts';
import { MalformedBytes } from '../fetch/codecs/unpacked.ts';

/** What the broker calls the end of a producer whose place was taken, or whose transaction ran out of time. */
const EPOCH_ERRORS = new Set([
  'INVALID_PRODUCER_EPOCH',
  'PRODUCER_FENCED',
  'INVALID_PRODUCER_ID_MAPPING',
]);

/**
 * kafkajs says so, in an error of no class of its own, when a broker took the connection but did not
 * tell which versions it speaks in time.
 */
const NOT_CONNECTED = 'Broker not connected';

/** What no later try can heal, and what to do about it. */
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
 * What brokers do when they are spoken to in a way that their port does not understand; those that go
 * away do so too, so that it can pass.
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
    /Connection closed by the server/, // in the middle of a login
    'if this goes on, check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD',
  ],
  [
    /Failed to find group coordinator/, // kafkajs keeps to itself that it may not ask for one
    'if this goes on, its ACLs must let this user write with the transactional id cellarstream.*, or read its own group',
  ],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|Connection timeout/,
    'if this goes on, check KAFKA_BROKERS',
  ],
];

/** Types of what brokers answer while they can't do what they were asked, and what to do if that goes on. */
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

/** Brokers have the same words for both. */
const OUTDATED = ' (another producer has opened its transactional id since, or its time ran out)';

/** A login that was not refused, but interrupted: kafkajs makes the same error of both. */
const INTERRUPTED = /Closed connection|closed by the server|Connection (error|timeout)|timed out/;

/**
 * kafkajs' errors as ours: `KAFKA_REFUSED` for good where credentials, rights or settings are at
 * fault, `TLS_REFUSED` as {@link tlsError} has it, else `code`, which can pass. Errors that
 * are not kafkajs' stay what they are.
 */
export function kafkaError(error: unknown, code: ErrorCode = 'KAFKA_UNREACHABLE'): unknown {
  if (error instanceof CellarstreamError || !isKafkas(error)) return error;
  const all = chain(error);
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

/** The error of a login that is ours: of a token, or of a broker that refuses it. */
function loginErrorIn(errors: readonly Error[]): CellarstreamError | undefined {
  return errors.find((each) => each instanceof CellarstreamError);
}

/** The broker, where kafkajs says which. */
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

/**
 * What ended a member of a group, as our error: `KAFKA_UNREACHABLE` where a new member may do, else
 * `KAFKA_REFUSED`.
 */
export function memberError(error: unknown, groupId: string): unknown {
  const malformed = chain(error).find((each) => each instanceof MalformedBytes);
  if (malformed) {
    return new CellarstreamError(
      'KAFKA_REFUSED',
      `a batch that the group ${groupId} has come to can't be read: ${malformed.message}`,
      { cause: error },
    );
  }
  const known = kafkaError(error);
  const passing = known instanceof CellarstreamError && known.code === 'KAFKA_UNREACHABLE';
  if (!passing || loginErrorIn(chain(error)) || canPass(error)) return known;
  return new CellarstreamError(
    'KAFKA_REFUSED',
    `Kafka refuses members of the group ${groupId}: see the cause`,
    {
      cause: error,
    },
  );
}

/** Whether kafkajs found no coordinator of a group: it does not tell what the brokers answered. */
export function isWithoutCoordinator(error: unknown): boolean {
  return chain(error).some((each) => each instanceof kafkajs.KafkaJSGroupCoordinatorNotFound);
}

/** Whether the broker took the producer for an outdated one. */
export function isEpochError(error: unknown): boolean {
  return chain(error).some(
    (at) =>
      EPOCH_ERRORS.has(typeOf(at)) ||
      (at instanceof CellarstreamError && at.context.epoch === true),
  );
}

/** Whether the brokers do not have a request at all, or not in the version that is in use here. */
export function isUnsupported(error: unknown): boolean {
  return chain(error).some((at) => typeOf(at) === 'UNSUPPORTED_VERSION');
}

function isKafkas(error: unknown): error is Error {
  const { KafkaJSError, KafkaJSAggregateError } = kafkajs;
  if (error instanceof KafkaJSError || error instanceof KafkaJSAggregateError) return true;
  return error instanceof Error && (error.message === NOT_CONNECTED || isWithoutMetadata(error));
}

/** Where no broker that it knows answers kafkajs has no metadata, and trips over that in all that an admin asks of them. */
function isWithoutMetadata(error: Error): boolean {
  return (
    error instanceof TypeError &&
    /null.*'topicMetadata'|'(topicMetadata|brokers)'.*null/.test(error.message)
  );
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

/** An error, its causes, and the errors that it gathers. */
function chain(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  const gathered = error instanceof kafkajs.KafkaJSAggregateError ? error.errors : [];
  return [error, ...gathered.flatMap(chain), ...chain(error.cause)];
}

/**
 * As kafkajs tells errors apart when it decides whether to begin again; and where a broker did not say
 * who coordinates the group, which kafkajs takes for the last word.
 */
function canPass(error: unknown): boolean {
  if (error instanceof kafkajs.KafkaJSNumberOfRetriesExceeded) return true;
  if (isWithoutCoordinator(error)) return true;
  let origin = error;
  while (origin instanceof Error && origin.cause instanceof Error) origin = origin.cause;
  if (origin instanceof kafkajs.KafkaJSError) return origin.retriable;
  return origin === error; // no answer at all, in words of no class of its own
}
