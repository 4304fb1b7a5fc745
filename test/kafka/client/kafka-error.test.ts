import kafkajs from 'kafkajs';
import { expect, it } from 'vitest';
import { CellarstreamError, describeError, isRetryable } from '../../../src/core/errors.ts';
import { kafkaError } from '../../../src/kafka/client/kafka-error.ts';
import { protocolError } from '../../../src/kafka/client/protocol-errors.ts';

const { KafkaJSConnectionError, KafkaJSNumberOfRetriesExceeded, KafkaJSSASLAuthenticationError } =
  kafkajs;
const { KafkaJSAggregateError, KafkaJSProtocolError } = kafkajs;

/** As kafkajs makes them; not all of their constructors are in its types. */
const make = (type: unknown, ...args: readonly unknown[]): Error =>
  Reflect.construct(type as new () => Error, args) as Error;
const login = (reason: string) =>
  make(KafkaJSSASLAuthenticationError, `SASL PLAIN authentication failed: ${reason}`);

const ours = (error: unknown): CellarstreamError => {
  const known = kafkaError(error);
  if (known instanceof CellarstreamError) return known;
  throw new Error('it is none of ours');
};

it.each([
  'Authentication failed: Invalid username or password',
  'Authentication failed during authentication due to invalid credentials',
  "the user's own login module says so",
])('a login that was refused ends it: %s', (reason) => {
  const error = ours(login(reason));
  expect([error.code, isRetryable(error)]).toEqual(['KAFKA_REFUSED', false]);
  expect(error.message).toContain('check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD');
});

it.each([
  'Closed connection',
  'Connection closed by the server',
  'Connection error: read ECONNRESET',
  'Request SaslAuthenticate(key: 36, version: 1) timed out',
])('a login that was interrupted is waited for: %s', (reason) => {
  const error = ours(login(reason));
  expect([error.code, isRetryable(error)]).toEqual(['KAFKA_UNREACHABLE', true]);
});

it('tells a mechanism that is not there from a password that is wrong', () => {
  const error = ours(
    make(KafkaJSSASLAuthenticationError, 'SASL PLAIN mechanism is not supported by the server'),
  );
  expect(error.message).toBe('Kafka refuses: check KAFKA_SASL_MECHANISM');
});

it("finds a certificate's failure behind kafkajs' tries", () => {
  const cause = make(KafkaJSConnectionError, 'Connection error: certificate has expired', {
    broker: 'kafka:9093',
    code: 'CERT_HAS_EXPIRED',
  });
  const tried = make(KafkaJSNumberOfRetriesExceeded, cause, { retryCount: 7, retryTime: 1 });
  const error = ours(tried);
  expect(error.code).toBe('KAFKA_UNREACHABLE');
  expect(describeError(error)).toBe(
    'the certificate of Kafka at kafka:9093 has expired: it must be renewed there',
  );
});

it('says why topics could not be made, which is the one place that says it', () => {
  const reason = make(KafkaJSProtocolError, { message: 'Number of partitions is invalid' });
  const error = ours(make(KafkaJSAggregateError, 'Topic creation errors', [reason]));
  expect(describeError(error)).toMatch(/: Topic creation errors: Number of partitions is invalid$/);
});

it.each([
  ['Closed connection', /KAFKA_SSL.*KAFKA_SASL_MECHANISM/],
  [
    'Connection error: Client network socket disconnected before secure TLS connection was established',
    /may not use TLS: set KAFKA_SSL=false/,
  ],
  [
    'SASL PLAIN authentication failed: Connection closed by the server',
    /^no answer from Kafka \(if this persists, check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD\)/,
  ],
  ['Request is not valid given the current SASL state', /unset KAFKA_SASL_MECHANISM/],
  [
    'Failed to find group coordinator',
    /\(if this persists, check that the ACLs allow .* cellarstream\.\*, and to read its group\)/,
  ],
  [
    'Connection error: connect ECONNREFUSED',
    /^no answer from Kafka \(if this persists, check KAFKA_BROKERS\): Connection error/,
  ],
])('says what a port may want that does not answer: %s', (message, line) => {
  const error = ours(make(KafkaJSConnectionError, message, { broker: 'kafka:9092' }));
  expect(error.code).toBe('KAFKA_UNREACHABLE');
  expect(describeError(error)).toMatch(line);
});

it.each([
  [
    15,
    /^Kafka answers COORDINATOR_NOT_AVAILABLE \(.*transaction\.state\.log\.min\.isr.*\): x: COORD/,
  ],
  [
    19,
    /^Kafka answers NOT_ENOUGH_REPLICAS \(fewer replicas are in sync than the topic's min\.insync\.replicas/,
  ],
  [5, /^Kafka answers LEADER_NOT_AVAILABLE \(.*all brokers with a replica/],
  [89, /^Kafka answers THROTTLING_QUOTA_EXCEEDED \(if this persists, raise the Kafka quota/],
  [14, /^Kafka answers COORDINATOR_LOAD_IN_PROGRESS: x: COORD/],
  [-1, /^Kafka answers error code -1: x: error code -1$/],
])('names what a broker answers that is waited for: %i', (code, line) => {
  const error = ours(protocolError(code, 'x'));
  expect([error.code, isRetryable(error)]).toEqual(['KAFKA_UNREACHABLE', true]);
  expect(describeError(error)).toMatch(line);
});

it('names it of a commit too', () => {
  const error = kafkaError(protocolError(19, 'partition 0 of wine.orders'), 'COMMIT_FAILED');
  expect(describeError(error)).toMatch(
    /^a Kafka transaction failed \(fewer replicas .* the topic's min\.insync\.replicas.*\): partition 0 of wine\.orders: NOT_ENOUGH_REPLICAS$/,
  );
});
