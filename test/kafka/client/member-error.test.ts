import kafkajs from 'kafkajs';
import { expect, it } from 'vitest';
import { isRetryable } from '../../../src/core/errors.ts';
import { memberError } from '../../../src/kafka/client/kafka-error.ts';

const { KafkaJSError, KafkaJSGroupCoordinatorNotFound, KafkaJSNonRetriableError } = kafkajs;

it.each([
  ['a broker that does not answer', new KafkaJSError('no answer'), true],
  [
    'a coordinator that is not found, yet',
    Reflect.construct(KafkaJSGroupCoordinatorNotFound, ['not found']) as Error,
    true,
  ],
  [
    'what kafkajs would not try again',
    new KafkaJSNonRetriableError('Invalid session timeout'),
    false,
  ],
] as const)('tells whether a new member may do: %s', (_, error, mayDo) => {
  expect(isRetryable(memberError(error, 'shipping'))).toBe(mayDo);
});
