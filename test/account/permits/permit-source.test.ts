import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { PermitBatch, QuotaDemands } from '../../../src/account/permits/guest-permits.ts';
import { PermitSource } from '../../../src/account/permits/permit-source.ts';
import { SimTime } from '../../sim/sim-time.ts';

const START = 1_750_000_000_000;
const SHARES: QuotaDemands = {
  login: { capacity: 10, used: [], requested: 0 },
  orders: { capacity: 100, used: [], requested: 10 },
};
const unreachable = new CellarstreamError('KAFKA_UNREACHABLE', 'no answer from Kafka');
const noTopic = new CellarstreamError('POSITION', 'there is no such topic');
const refused = new CellarstreamError('KAFKA_REFUSED', 'not allowed to write');

/** A service that gives 3 permits, and what is wrong with Kafka by time, ms from the start on. */
function source(wrongAt: (ms: number) => Error | undefined, random = () => 0.5) {
  const time = new SimTime(START);
  const { scheduler } = time;
  const told: unknown[] = [];
  const begun: number[] = [];
  const permits = new PermitSource({
    requestPermits: async () => {
      const at = time.now();
      begun.push(at - START);
      await time.sleep(200);
      const wrong = wrongAt(at - START);
      if (wrong) throw wrong;
      return { counts: { orders: 3 }, expiresAt: at + 9_000, wallExpiresAt: at + 9_000 };
    },
    declarations: {
      declare: () => Promise.reject(noTopic),
      declareFinal: () => Promise.resolve(),
    },
    ...{
      account: 'main',
      patienceMs: 20_000,
      kafkaPatienceMs: 5_000,
      scheduler,
      wallNow: () => time.now() + 5,
    },
    random,
    onUndeclared: (error) => told.push(error),
  });
  const got = async (): Promise<PermitBatch> => {
    const work = permits.acquire(() => SHARES);
    let isOver = false;
    work.catch(() => undefined).finally(() => (isOver = true));
    await time.until(() => isOver, Infinity);
    return work;
  };
  return { time, got, told, begun, now: () => time.now() - START };
}

describe('where permits come from', () => {
  it('is the service, even where Kafka is away for a moment as it is asked first', async () => {
    const { got, told, now } = source((ms) => (ms < 3_000 ? unreachable : undefined));
    expect((await got()).counts).toEqual({ orders: 3 });
    expect(now()).toBeLessThan(5_000);
    expect(told).toEqual([]);
  });

  it('is the service again after a batch, where Kafka was away for longer', async () => {
    const { time, got, told, now } = source((ms) => (ms < 10_000 ? unreachable : undefined));
    const first = await got();
    expect(now()).toBeGreaterThan(5_000);
    expect(now()).toBeLessThan(7_000);
    expect(first).toEqual({
      counts: { orders: 10 },
      expiresAt: time.now() + 10_000,
      wallExpiresAt: time.now() + 10_000 + 5,
    });
    await time.pass(5_000);
    expect((await got()).counts).toEqual({ orders: 3 });
    expect(told).toEqual([unreachable]);
  });

  it('is nobody without Kafka: it is waited for once, and asked before each batch', async () => {
    const { got, told, begun } = source(() => unreachable);
    await got();
    const tries = begun.length;
    expect((await got()).counts).toEqual({ orders: 10 });
    expect((await got()).counts).toEqual({ orders: 10 });
    expect(begun).toHaveLength(tries + 2);
    expect(told).toEqual([unreachable]);
  });

  it('is looked for after pauses of which no two are the same', async () => {
    const lots = [0, 0.9, 0.5];
    const { got, begun } = source(
      (ms) => (ms < 3_000 ? unreachable : undefined),
      () => lots.shift()!,
    );
    await got();
    expect(begun).toEqual([0, 700, 2_300, 3_500]); // a try takes 200 ms
  });

  it('is nobody, at once, where what is wrong does not pass', async () => {
    const { got, told, now } = source(() => refused);
    expect((await got()).counts).toEqual({ orders: 10 });
    expect(now()).toBeLessThan(1_000);
    await got();
    expect(told).toEqual([refused]);
  });

  it('is nobody, at once, while there are no topics, and the service that makes them', async () => {
    const { time, got, told, now } = source((ms) => (ms < 5_000 ? noTopic : undefined));
    expect((await got()).counts).toEqual({ orders: 10 });
    expect(now()).toBeLessThan(1_000);
    await time.pass(5_000);
    expect((await got()).counts).toEqual({ orders: 3 });
    expect(told).toEqual([]);
  });

  it('ends when Kafka has been there and stays away', async () => {
    const { got, now } = source((ms) => (ms < 100 ? undefined : unreachable));
    await got();
    await expect(got()).rejects.toBe(unreachable);
    expect(now()).toBeGreaterThan(20_000);
  });
});
