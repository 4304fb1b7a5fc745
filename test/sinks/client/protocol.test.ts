import { describe, expect, it } from 'vitest';
import { kafkasOf, NoAnswer, NotSent } from '../../../src/sinks/client/protocol.ts';

describe('kafkasOf', () => {
  it('is what kafkajs has thrown', () => {
    const cause = new Error('of kafkajs');
    expect(kafkasOf(new NotSent('x', { cause }))).toBe(cause);
    expect(kafkasOf(new NoAnswer('x', { cause }))).toBe(cause);
    expect(kafkasOf(cause)).toBe(cause);
  });
});
