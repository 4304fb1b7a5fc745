// The error codes of Kafka's protocol: their names, and what a producer does about each.

import kafkajs from 'kafkajs';
import type { KafkaJSProtocolError } from 'kafkajs';

/**
 * What an error code means for who was answered with it:
 *
 * - `done`: it is as it was asked for;
 * - `again`: the same bytes again, after a pause;
 * - `soon`: the same bytes again, in a moment: the transaction before is being ended;
 * - `leader`: the same bytes again, to whoever leads the partition now;
 * - `coordinator`: the same bytes again, to whoever coordinates the transactional id now;
 * - `abort`: this transaction can't be committed, another one may;
 * - `epoch`: this producer is not the newest of its id any more: a newer one has been opened, or its transaction ran out of time;
 * - `refused`: no later try will do, until somebody changes rights or settings.
 */
type Meaning = 'done' | 'again' | 'soon' | 'leader' | 'coordinator' | 'abort' | 'epoch' | 'refused';

/**
 * The errors that brokers answer a producer with, by their codes:
 * https://kafka.apache.org/protocol#protocol_error_codes
 */
const ERRORS: ReadonlyMap<number, readonly [name: string, meaning: Meaning]> = new Map([
  [0, ['NONE', 'done']],
  [2, ['CORRUPT_MESSAGE', 'again']], // damaged on its way
  [3, ['UNKNOWN_TOPIC_OR_PARTITION', 'leader']], // also of a broker that has not heard of it yet
  [5, ['LEADER_NOT_AVAILABLE', 'leader']],
  [6, ['NOT_LEADER_OR_FOLLOWER', 'leader']],
  [7, ['REQUEST_TIMED_OUT', 'leader']], // written, but not to as many replicas as it takes: perhaps others follow another leader
  [9, ['REPLICA_NOT_AVAILABLE', 'leader']],
  [10, ['MESSAGE_TOO_LARGE', 'abort']],
  [13, ['NETWORK_EXCEPTION', 'again']],
  [14, ['COORDINATOR_LOAD_IN_PROGRESS', 'again']],
  [15, ['COORDINATOR_NOT_AVAILABLE', 'coordinator']],
  [16, ['NOT_COORDINATOR', 'coordinator']],
  [17, ['INVALID_TOPIC_EXCEPTION', 'refused']],
  [18, ['RECORD_LIST_TOO_LARGE', 'abort']],
  [19, ['NOT_ENOUGH_REPLICAS', 'again']], // also where the coordinator could not be asked for its word
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
  // One batch a partition is under way at a time: nothing can have overtaken it, something is lost.
  [45, ['OUT_OF_ORDER_SEQUENCE_NUMBER', 'abort']],
  [46, ['DUPLICATE_SEQUENCE_NUMBER', 'done']], // it was written before, and its answer lost
  [47, ['INVALID_PRODUCER_EPOCH', 'epoch']],
  [48, ['INVALID_TXN_STATE', 'abort']],
  [49, ['INVALID_PRODUCER_ID_MAPPING', 'epoch']],
  [50, ['INVALID_TRANSACTION_TIMEOUT', 'refused']],
  [51, ['CONCURRENT_TRANSACTIONS', 'soon']], // the markers of the one before are being written
  [53, ['TRANSACTIONAL_ID_AUTHORIZATION_FAILED', 'refused']],
  [55, ['OPERATION_NOT_ATTEMPTED', 'again']], // because of another partition of the same request
  [56, ['KAFKA_STORAGE_ERROR', 'leader']],
  [59, ['UNKNOWN_PRODUCER_ID', 'abort']],
  [74, ['FENCED_LEADER_EPOCH', 'leader']],
  [75, ['UNKNOWN_LEADER_EPOCH', 'leader']],
  [76, ['UNSUPPORTED_COMPRESSION_TYPE', 'refused']],
  [78, ['OFFSET_NOT_AVAILABLE', 'leader']], // it leads only just now
  [87, ['INVALID_RECORD', 'refused']],
  [89, ['THROTTLING_QUOTA_EXCEEDED', 'again']],
  [90, ['PRODUCER_FENCED', 'epoch']],
  [100, ['UNKNOWN_TOPIC_ID', 'leader']],
  [120, ['TRANSACTION_ABORTABLE', 'abort']],
]);

/** The codes that are compared with by name. */
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

/** What a broker's word means. A code that is not in the table is none that a producer can go on after. */
export function meaningOf(code: number): Meaning {
  return ERRORS.get(code)?.[1] ?? 'abort';
}

/** Names of the error codes that only clients other than producers receive: group members (`sinks/membership`) and topic calls (`sinks/topics`). */
const OTHERS: ReadonlyMap<number, string> = new Map([
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

/** Kafka's name of an error code. */
export function nameOfError(code: number): string {
  return ERRORS.get(code)?.[0] ?? OTHERS.get(code) ?? `error code ${code}`;
}

/** A broker's word as an error, by its name; `type` is the name, as in kafkajs' errors. */
export function protocolError(code: number, what: string): KafkaJSProtocolError {
  const type = nameOfError(code);
  return new kafkajs.KafkaJSProtocolError(
    Object.assign(new Error(`${what}: ${type}`), { type, code }),
  );
}

/** The same of a partition. */
export function partitionError(
  code: number,
  topic: string,
  partition: number,
): KafkaJSProtocolError {
  return protocolError(code, `partition ${partition} of ${topic}`);
}

/** Nobody is known to lead a partition: as a broker would say it. */
export function noLeader(topic: string, partition: number): KafkaJSProtocolError {
  return partitionError(ERROR.LEADER_NOT_AVAILABLE, topic, partition);
}
