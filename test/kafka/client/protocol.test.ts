import { describe, expect, it } from 'vitest';
import { kafkajsCauseOf, CallUnanswered, CallNotSent } from '../../../src/kafka/client/protocol.ts';

describe('kafkasOf', () => {
  it('is what kafkajs has thrown', () => {
    const cause = new Error('of kafkajs');
    expect(kafkajsCauseOf(new CallNotSent('x', { cause }))).toBe(cause);
    expect(kafkajsCauseOf(new CallUnanswered('x', { cause }))).toBe(cause);
    expect(kafkajsCauseOf(cause)).toBe(cause);
  });
});
