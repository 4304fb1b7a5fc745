import kafkajs from 'kafkajs';
import protocolErrors from 'kafkajs/src/protocol/error.js';
import { describe, expect, it } from 'vitest';
import { CellarstreamError, describeError, isRetryable } from '../../../src/core/errors.ts';
import { kafkaError } from '../../../src/kafka/client/kafka-error.ts';
import { errorAction, protocolError } from '../../../src/kafka/client/protocol-errors.ts';

/** What kafkajs calls by names from before Kafka 2.6 (KIP-599, KIP-605). */
const RENAMED: Readonly<Record<string, string>> = {
  NOT_LEADER_FOR_PARTITION: 'NOT_LEADER_OR_FOLLOWER',
  GROUP_LOAD_IN_PROGRESS: 'COORDINATOR_LOAD_IN_PROGRESS',
  GROUP_COORDINATOR_NOT_AVAILABLE: 'COORDINATOR_NOT_AVAILABLE',
  NOT_COORDINATOR_FOR_GROUP: 'NOT_COORDINATOR',
};
/** Of Kafka's documentation, and younger than kafkajs. */
const YOUNGER: Readonly<Record<number, string>> = {
  89: 'THROTTLING_QUOTA_EXCEEDED',
  90: 'PRODUCER_FENCED',
  100: 'UNKNOWN_TOPIC_ID',
  120: 'TRANSACTION_ABORTABLE',
};
const nameOf = (code: number) => protocolError(code, 'x').type;
const isKnown = (code: number) => !nameOf(code).startsWith('error code');
/** What is answered to others than producers. */
const OTHERS = [1, 22, 23, 24, 25, 26, 27, 30, 36, 37, 38, 40, 79, 81];
const ALL_KNOWN = Array.from({ length: 140 }, (_, code) => code).filter(isKnown);
const KNOWN = ALL_KNOWN.filter((code) => !OTHERS.includes(code));

describe('the table of errors', () => {
  it('has names and codes that belong together', () => {
    const expected = (code: number) => {
      const { type } = protocolErrors.createErrorFromCode(code);
      return YOUNGER[code] ?? RENAMED[type] ?? type;
    };
    expect(KNOWN.length).toBeGreaterThan(40);
    expect(ALL_KNOWN.map((code) => [code, nameOf(code)])).toEqual(
      ALL_KNOWN.map((code) => [code, code === 0 ? 'NONE' : expected(code)]),
    );
  });

  it('knows what passes from what does not', () => {
    const meanings = {
      done: [0, 46],
      again: [2, 13, 14, 19, 20, 55, 89],
      soon: [51],
      leader: [3, 5, 6, 7, 56, 74, 75, 78],
      coordinator: [15, 16],
      abort: [10, 18, 45, 48, 59, 120],
      epoch: [47, 49, 90],
      refused: [29, 31, 53],
    };
    for (const [meaning, codes] of Object.entries(meanings)) {
      expect(codes.map((code) => [code, errorAction(code)])).toEqual(
        codes.map((c) => [c, meaning]),
      );
    }
  });

  it.each([-1, 4, 99, 32_000])('goes on after no code that is not in it: %i', (code) => {
    expect(errorAction(code)).toBe('abort');
    expect(protocolError(code, 'x').message).toBe(`x: error code ${code}`);
  });
});

describe('protocolError', () => {
  it("is kafkajs' error, with the name and the code of it", () => {
    const error = protocolError(6, 'partition 3 of orders');
    expect(error).toBeInstanceOf(kafkajs.KafkaJSProtocolError);
    expect(error).toMatchObject({ type: 'NOT_LEADER_OR_FOLLOWER', code: 6 });
    expect(error.message).toBe('partition 3 of orders: NOT_LEADER_OR_FOLLOWER');
  });

  it.each(
    KNOWN.filter((code) => errorAction(code) === 'refused').map((code) => [nameOf(code), code]),
  )('ends with one line that says what to do, and no other try: %s', (name, code) => {
    const error = kafkaError(protocolError(Number(code), 'orders'), 'COMMIT_FAILED');
    expect(error).toBeInstanceOf(CellarstreamError);
    expect([(error as CellarstreamError).code, isRetryable(error)]).toEqual([
      'KAFKA_REFUSED',
      false,
    ]);
    expect((error as CellarstreamError).message).toMatch(/^Kafka refuses: .{20,160}$/);
    expect(describeError(error)).toContain(`orders: ${name}`);
  });

  it.each(
    KNOWN.filter((code) => errorAction(code) === 'epoch').map((code) => [nameOf(code), code]),
  )('ends as that of a producer that is not the newest: %s', (_, code) => {
    const error = kafkaError(protocolError(Number(code), 'InitProducerId'), 'COMMIT_FAILED');
    expect(error).toMatchObject({ code: 'COMMIT_FAILED', context: { epoch: true } });
  });

  it.each(
    KNOWN.filter(
      (code) =>
        ['again', 'leader', 'coordinator', 'abort'].includes(errorAction(code)) &&
        ![10, 18].includes(code),
    ).map((code) => [nameOf(code), code]),
  )('can pass: %s', (_, code) => {
    const error = kafkaError(protocolError(Number(code), 'orders'), 'COMMIT_FAILED');
    expect(isRetryable(error)).toBe(true);
    expect(error).toMatchObject({ code: 'COMMIT_FAILED', context: { epoch: false } });
  });
});
