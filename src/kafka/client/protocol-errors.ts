// The error codes of Kafka's protocol: their names, and what a producer does about each.

import kafkajs from 'kafkajs';
import type { KafkaJSProtocolError } from 'kafkajs';
import { nameOf } from './protocol.ts';
import type { Address } from './protocol.ts';

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
 * Kafka's error codes by name: the number, and the action of a producer after a response with this code. Codes without an action are not
 * sent to producers. https://kafka.apache.org/protocol#protocol_error_codes
 */
const ERRORS = {
  NONE: [0, 'done'],
  OFFSET_OUT_OF_RANGE: [1],
  CORRUPT_MESSAGE: [2, 'again'], // damaged in transit
  UNKNOWN_TOPIC_OR_PARTITION: [3, 'leader'], // also from a broker that does not know the topic yet
  LEADER_NOT_AVAILABLE: [5, 'leader'],
  NOT_LEADER_OR_FOLLOWER: [6, 'leader'],
  REQUEST_TIMED_OUT: [7, 'leader'], // written, but not to enough replicas: the others may follow another leader
  REPLICA_NOT_AVAILABLE: [9, 'leader'],
  MESSAGE_TOO_LARGE: [10, 'abort'],
  NETWORK_EXCEPTION: [13, 'again'],
  COORDINATOR_LOAD_IN_PROGRESS: [14, 'again'],
  COORDINATOR_NOT_AVAILABLE: [15, 'coordinator'],
  NOT_COORDINATOR: [16, 'coordinator'],
  INVALID_TOPIC_EXCEPTION: [17, 'refused'],
  RECORD_LIST_TOO_LARGE: [18, 'abort'],
  NOT_ENOUGH_REPLICAS: [19, 'again'], // also if the leader could not verify the transaction with its coordinator
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: [20, 'again'],
  INVALID_REQUIRED_ACKS: [21, 'refused'],
  ILLEGAL_GENERATION: [22],
  INCONSISTENT_GROUP_PROTOCOL: [23],
  INVALID_GROUP_ID: [24],
  UNKNOWN_MEMBER_ID: [25],
  INVALID_SESSION_TIMEOUT: [26],
  REBALANCE_IN_PROGRESS: [27],
  TOPIC_AUTHORIZATION_FAILED: [29, 'refused'],
  GROUP_AUTHORIZATION_FAILED: [30],
  CLUSTER_AUTHORIZATION_FAILED: [31, 'refused'],
  INVALID_TIMESTAMP: [32, 'refused'],
  UNSUPPORTED_VERSION: [35, 'refused'],
  TOPIC_ALREADY_EXISTS: [36],
  INVALID_PARTITIONS: [37],
  INVALID_REPLICATION_FACTOR: [38],
  INVALID_CONFIG: [40],
  NOT_CONTROLLER: [41, 'again'],
  INVALID_REQUEST: [42, 'refused'],
  UNSUPPORTED_FOR_MESSAGE_FORMAT: [43, 'refused'],
  POLICY_VIOLATION: [44, 'refused'],
  // A partition has only one batch in flight, so none was overtaken: an earlier batch is missing.
  OUT_OF_ORDER_SEQUENCE_NUMBER: [45, 'abort'],
  DUPLICATE_SEQUENCE_NUMBER: [46, 'done'], // written by an earlier attempt whose response did not arrive
  INVALID_PRODUCER_EPOCH: [47, 'epoch'],
  INVALID_TXN_STATE: [48, 'abort'],
  INVALID_PRODUCER_ID_MAPPING: [49, 'epoch'],
  INVALID_TRANSACTION_TIMEOUT: [50, 'refused'],
  CONCURRENT_TRANSACTIONS: [51, 'soon'], // markers of the previous transaction are being written
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: [53, 'refused'],
  OPERATION_NOT_ATTEMPTED: [55, 'again'], // because another partition in the same request failed
  KAFKA_STORAGE_ERROR: [56, 'leader'],
  UNKNOWN_PRODUCER_ID: [59, 'abort'],
  FENCED_LEADER_EPOCH: [74, 'leader'],
  UNKNOWN_LEADER_EPOCH: [75, 'leader'],
  UNSUPPORTED_COMPRESSION_TYPE: [76, 'refused'],
  OFFSET_NOT_AVAILABLE: [78, 'leader'], // the leader was elected a moment ago
  MEMBER_ID_REQUIRED: [79],
  GROUP_MAX_SIZE_REACHED: [81],
  INVALID_RECORD: [87, 'refused'],
  THROTTLING_QUOTA_EXCEEDED: [89, 'again'],
  PRODUCER_FENCED: [90, 'epoch'],
  UNKNOWN_TOPIC_ID: [100, 'leader'],
  TRANSACTION_ABORTABLE: [120, 'abort'],
} as const satisfies Readonly<Record<string, readonly [code: number, action?: ErrorAction]>>;

const BY_CODE = new Map<number, { readonly name: string; readonly action?: ErrorAction }>(
  Object.entries(ERRORS).map(([name, [code, action]]) => [
    code,
    { name, ...(action && { action }) },
  ]),
);

export const ERROR = Object.fromEntries(
  Object.entries(ERRORS).map(([name, [code]]) => [name, code]),
) as { readonly [Name in keyof typeof ERRORS]: (typeof ERRORS)[Name][0] };

/**
 * Returns the action of a producer after a response with this error code; `abort` for codes that are unknown or have no action in `ERRORS`.
 */
export function errorAction(code: number): ErrorAction {
  return BY_CODE.get(code)?.action ?? 'abort';
}

export function nameOfError(code: number): string {
  return BY_CODE.get(code)?.name ?? `error code ${code}`;
}

/** Creates kafkajs' error for an error code, with Kafka's name of the code as `type`. @param what First part of the message. */
export function protocolError(code: number, what: string): KafkaJSProtocolError {
  const type = nameOfError(code);
  return new kafkajs.KafkaJSProtocolError(
    Object.assign(new Error(`${what}: ${type}`), { type, code }),
  );
}

/** Creates kafkajs' error for an error code of a partition. */
export function partitionError(code: number, topic: string, partition: number): Error {
  return protocolError(code, `partition ${partition} of ${topic}`);
}

/** Creates kafkajs' error for a partition without a known leader. It has the error code that brokers use in this case. */
export function noLeaderError(topic: string, partition: number): Error {
  return partitionError(ERROR.LEADER_NOT_AVAILABLE, topic, partition);
}

/** Creates kafkajs' error for a response that can't be used. It is retried like the error of a failed connection. */
export function responseError(
  broker: Address,
  request: string,
  problem: string,
  cause?: unknown,
): Error {
  const name = nameOf(broker);
  const message = `the response of ${name} to ${request} ${problem}`;
  return Object.assign(new kafkajs.KafkaJSConnectionError(message, { broker: name }), { cause });
}

/** Creates the error for a response that lacks a partition of the request. */
export function missingPartitionError(
  broker: Address,
  request: string,
  topic: string,
  partition: number,
): Error {
  return responseError(broker, request, `lacks partition ${partition} of ${topic}`);
}
