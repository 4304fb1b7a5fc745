import kafkajs from 'kafkajs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { CallUnanswered } from '../../../src/kafka/client/protocol.ts';
import { Patience } from '../../../src/kafka/client/patience.ts';
import { protocolError } from '../../../src/kafka/client/protocol-errors.ts';

const open = () => new AbortController().signal;
const passing = () => protocolError(6, 'orders');

describe('Patience', () => {
  it('waits twice as long each time', async () => {
    const limit = new Patience(60_000, open());
    const began = performance.now();
    for (let n = 0; n < 3; n++) await limit.wait(passing());
    expect(performance.now() - began).toBeGreaterThan(20 + 40 + 80 - 5); // timers may be early by a ms
  });

  it('goes on soon as long as it goes on at all', async () => {
    const limit = new Patience(60_000, open());
    for (let n = 0; n < 3; n++) await limit.waitBriefly(passing());
    const error = passing();
    await expect(new Patience(0, open()).waitBriefly(error)).rejects.toBe(error);
    await expect(new Patience(60_000, AbortSignal.abort()).waitBriefly(error)).rejects.toBe(error);
  });

  it('is over when its time is', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const error = passing();
    const limit = new Patience(1_000, open());
    for (let n = 0; n < 2; n++) await limit.wait(error);
    vi.advanceTimersByTime(1_000);
    await expect(limit.wait(error)).rejects.toBe(error);
    await expect(new Patience(0, open()).wait(error)).rejects.toBe(error);
  });

  it('has none with what no later try changes', async () => {
    const bug = new TypeError('a bug');
    await expect(new Patience(60_000, open()).wait(bug)).rejects.toBe(bug);
    const refused = protocolError(29, 'orders');
    await expect(new Patience(60_000, open()).wait(refused)).rejects.toBe(refused);
  });

  it.each([
    [15, 'COORDINATOR_NOT_AVAILABLE'],
    [19, 'NOT_ENOUGH_REPLICAS'],
  ])(
    'tells of a cluster that lacks brokers after five seconds, not when its time is over: %i',
    async (code, type) => {
      vi.useFakeTimers();
      try {
        const limit = new Patience(60_000, open());
        let told: unknown;
        const waiting = (async () => {
          for (;;) await limit.wait(protocolError(code, 'orders'));
        })().catch((error: unknown) => (told = error));
        await vi.advanceTimersByTimeAsync(4_000);
        expect(told).toBeUndefined();
        await vi.advanceTimersByTimeAsync(2_000);
        await waiting;
        expect(told).toMatchObject({ type });
      } finally {
        vi.useRealTimers();
      }
    },
  );

  it('waits longer where the cluster answers something else in between', async () => {
    vi.useFakeTimers();
    try {
      const limit = new Patience(60_000, open());
      for (let n = 0; n < 40; n++) {
        await limit.waitBriefly(protocolError(n % 9 ? 19 : 6, 'orders')); // a real pause, of 10 ms
        vi.advanceTimersByTime(600); // 4.2 s from the first to the last of eight in a row
      }
    } finally {
      vi.useRealTimers();
    }
  });

  it('looks at what a connection has failed of', async () => {
    const lost = new CallUnanswered('x', {
      cause: new kafkajs.KafkaJSConnectionError('Closed connection'),
    });
    await new Patience(60_000, open()).wait(lost);
    const bug = new CallUnanswered('x', { cause: new RangeError('a bug') });
    await expect(new Patience(60_000, open()).wait(bug)).rejects.toBe(bug);
  });

  it('ends with whoever wanted it, at once', async () => {
    const closing = new AbortController();
    const error = passing();
    const limit = new Patience(60_000, closing.signal);
    for (let n = 0; n < 4; n++) await limit.wait(error); // the next pause is 320 ms
    const began = performance.now();
    const waiting = limit.wait(error);
    closing.abort();
    await expect(waiting).rejects.toBe(error);
    await expect(limit.wait(error)).rejects.toBe(error);
    expect(performance.now() - began).toBeLessThan(200);
  });
});
