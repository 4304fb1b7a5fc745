// The error codes of Kafka's protocol: their names, and what a producer does about each.

import kafkajs from 'kafkajs';
import type { KafkaJSProtocolError } from 'kafkajs';

/**
 * The client's action after a response with an error code:
 *
 * - `done`: nothing, the request has succeeded;
 * - `again`: sends the same bytes again after a pause;
 * - `soon`: sends the same bytes again after a moment, while the previous transaction is being ended;
 * - `leader`: looks up the partition's leader, and sends the same bytes to it;
 * - `coordinator`: looks up the coordinator of the transactional id, and sends the same bytes to it;
 * - `abort`: aborts this transaction, as it can't be committed; another one may succeed;
 * - `epoch`: stops this producer: a newer one has opened its transactional id, or its transaction timed out;
 * - `refused`: fails, as no retry can succeed until an operator changes rights or settings.
 */
type ErrorAction =
  'done' | 'again' | 'soon' | 'leader' | 'coordinator' | 'abort' | 'epoch' | 'refused';

/**
 * Kafka's names of the error codes that a producer receives, and the client's action after each:
 * https://kafka.apache.org/protocol#protocol_error_codes
 */
const ERRORS: ReadonlyMap<number, readonly [name: string, meaning: ErrorAction]> = new Map([
  [0, ['NONE', 'done']],
  [2, ['CORRUPT_MESSAGE', 'again']], // damaged in transit
  [3, ['UNKNOWN_TOPIC_OR_PARTITION', 'leader']], // also from a broker that does not know the topic yet
  [5, ['LEADER_NOT_AVAILABLE', 'leader']],
  [6, ['NOT_LEADER_OR_FOLLOWER', 'leader']],
  [7, ['REQUEST_TIMED_OUT', 'leader']], // written, but not to enough replicas: the others may follow another leader
  [9, ['REPLICA_NOT_AVAILABLE', 'leader']],
  [10, ['MESSAGE_TOO_LARGE', 'abort']],
  [13, ['NETWORK_EXCEPTION', 'again']],
  [14, ['COORDINATOR_LOAD_IN_PROGRESS', 'again']],
  [15, ['COORDINATOR_NOT_AVAILABLE', 'coordinator']],
  [16, ['NOT_COORDINATOR', 'coordinator']],
  [17, ['INVALID_TOPIC_EXCEPTION', 'refused']],
  [18, ['RECORD_LIST_TOO_LARGE', 'abort']],
  [19, ['NOT_ENOUGH_REPLICAS', 'again']], // also if the leader could not verify the transaction with its coordinator
  [20, ['NOT_ENOUGH_REPLICAS_AFTER_APPEND', 'again']],
  [21, ['INVALID_REQUIRED_ACKS', 'refused']],
  [29, ['TOPIC_AUTHORIZATION_FAILED', 'refused']],
  [31, ['CLUSTER_AUTHORIZATION_FAILED', 'refused']],
  [32, ['INVALID_TIMESTAMP', 'refused']],
  [35, ['UNSUPPORTED_VERSION', 'refused']],
  [41, ['NOT_CONTROLLER', 'again']],
  [42, ['INVALID_REQUEST', 'refused']],
  [43, ['UNSUPPORTED_FOR_MESSAGE_FORMAT', 'refused']],
  [44, ['POLICY_VIOLATION', 'refused']],
  // A partition has only one batch in flight, so none was overtaken: an earlier batch is missing.
  [45, ['OUT_OF_ORDER_SEQUENCE_NUMBER', 'abort']],
  [46, ['DUPLICATE_SEQUENCE_NUMBER', 'done']], // written by an earlier attempt whose response did not arrive
  [47, ['INVALID_PRODUCER_EPOCH', 'epoch']],
  [48, ['INVALID_TXN_STATE', 'abort']],
  [49, ['INVALID_PRODUCER_ID_MAPPING', 'epoch']],
  [50, ['INVALID_TRANSACTION_TIMEOUT', 'refused']],
  [51, ['CONCURRENT_TRANSACTIONS', 'soon']], // markers of the previous transaction are being written
  [53, ['TRANSACTIONAL_ID_AUTHORIZATION_FAILED', 'refused']],
  [55, ['OPERATION_NOT_ATTEMPTED', 'again']], // because another partition in the same request failed
  [56, ['KAFKA_STORAGE_ERROR', 'leader']],
  [59, ['UNKNOWN_PRODUCER_ID', 'abort']],
  [74, ['FENCED_LEADER_EPOCH', 'leader']],
  [75, ['UNKNOWN_LEADER_EPOCH', 'leader']],
  [76, ['UNSUPPORTED_COMPRESSION_TYPE', 'refused']],
  [78, ['OFFSET_NOT_AVAILABLE', 'leader']], // the leader was elected a moment ago
  [87, ['INVALID_RECORD', 'refused']],
  [89, ['THROTTLING_QUOTA_EXCEEDED', 'again']],
  [90, ['PRODUCER_FENCED', 'epoch']],
  [100, ['UNKNOWN_TOPIC_ID', 'leader']],
  [120, ['TRANSACTION_ABORTABLE', 'abort']],
]);

/** Kafka's error codes by name; only those that other files compare with. */
export const ERROR = {
  NONE: 0,
  OFFSET_OUT_OF_RANGE: 1,
  UNKNOWN_TOPIC_OR_PARTITION: 3,
  LEADER_NOT_AVAILABLE: 5,
  NOT_LEADER_OR_FOLLOWER: 6,
  COORDINATOR_NOT_AVAILABLE: 15,
  INVALID_TOPIC_EXCEPTION: 17,
  ILLEGAL_GENERATION: 22,
  TOPIC_AUTHORIZATION_FAILED: 29,
  GROUP_AUTHORIZATION_FAILED: 30,
  CLUSTER_AUTHORIZATION_FAILED: 31,
  UNSUPPORTED_VERSION: 35,
  TOPIC_ALREADY_EXISTS: 36,
  INVALID_PARTITIONS: 37,
  INVALID_REPLICATION_FACTOR: 38,
  INVALID_CONFIG: 40,
  NOT_CONTROLLER: 41,
  POLICY_VIOLATION: 44,
  INVALID_TXN_STATE: 48,
  CONCURRENT_TRANSACTIONS: 51,
  OPERATION_NOT_ATTEMPTED: 55,
  MEMBER_ID_REQUIRED: 79,
} as const;

/** Returns what the client does after a response with this error code; `abort` for unknown codes. */
export function errorAction(code: number): ErrorAction {
  return ERRORS.get(code)?.[1] ?? 'abort';
}

/**
 * Names of the error codes that only clients other than producers receive: group members (`kafka/membership`) and topic calls
 * (`sinks/topics`).
 */
const OTHER_ERROR_NAMES: ReadonlyMap<number, string> = new Map([
  [22, 'ILLEGAL_GENERATION'],
  [23, 'INCONSISTENT_GROUP_PROTOCOL'],
  [24, 'INVALID_GROUP_ID'],
  [25, 'UNKNOWN_MEMBER_ID'],
  [26, 'INVALID_SESSION_TIMEOUT'],
  [27, 'REBALANCE_IN_PROGRESS'],
  [30, 'GROUP_AUTHORIZATION_FAILED'],
  [36, 'TOPIC_ALREADY_EXISTS'],
  [37, 'INVALID_PARTITIONS'],
  [38, 'INVALID_REPLICATION_FACTOR'],
  [40, 'INVALID_CONFIG'],
  [79, 'MEMBER_ID_REQUIRED'],
  [81, 'GROUP_MAX_SIZE_REACHED'],
]);

/** Returns Kafka's name of an error code. */
export function nameOfError(code: number): string {
  return ERRORS.get(code)?.[0] ?? OTHER_ERROR_NAMES.get(code) ?? `error code ${code}`;
}

/** Creates kafkajs' error for an error code, with Kafka's name of the code as `type`. `what` begins the message. */
export function protocolError(code: number, what: string): KafkaJSProtocolError {
  const type = nameOfError(code);
  return new kafkajs.KafkaJSProtocolError(
    Object.assign(new Error(`${what}: ${type}`), { type, code }),
  );
}

/** Creates kafkajs' error for an error code of a partition. */
export function partitionError(
  code: number,
  topic: string,
  partition: number,
): KafkaJSProtocolError {
  return protocolError(code, `partition ${partition} of ${topic}`);
}

/** Creates kafkajs' error for a partition without a known leader, with the error code that brokers use for it. */
export function noLeaderError(topic: string, partition: number): KafkaJSProtocolError {
  return partitionError(ERROR.LEADER_NOT_AVAILABLE, topic, partition);
}
