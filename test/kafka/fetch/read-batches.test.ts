import { Observable, of, Subject, take } from 'rxjs';
import type { ObservableInput } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import type { PartitionBatch } from '../../../src/kafka/fetch/kafka-reader.ts';
import { readBatches } from '../../../src/kafka/fetch/read-batches.ts';
import type { ReadBatchesOptions } from '../../../src/kafka/fetch/read-batches.ts';
import { jsonMessage, kafkaWith } from '../../support/json-topic.ts';

/** One partition of so many messages is read, and what comes behind them; each batch is handled as it says. */
async function reading<R>(
  end: bigint,
  handle: (batch: PartitionBatch) => ObservableInput<R>,
  options: Partial<ReadBatchesOptions> = {},
) {
  const { cluster, kafka, put, left } = await kafkaWith();
  const read$ = readBatches(
    {
      kafka,
      topic: 't',
      range: { from: new Map([[0, 0n]]), ends: new Map([[0, end]]) },
      follow: true,
      ...options,
    },
    handle,
  );
  const ended = (of$ = read$) =>
    new Promise<unknown>((complete, error) =>
      of$.subscribe({ complete: () => complete(0), error }),
    );
  return { cluster, put: (value: string) => put(0, jsonMessage(value)), left, read$, ended };
}

const failure = new Error('no');
const fail = (): never => {
  throw failure;
};

describe('readBatches', () => {
  it('ends what a batch emits at once when nobody wants more, and closes the reader', async () => {
    const given: number[] = [];
    let isOver = false;
    const { put, left, read$, ended } = await reading(
      1n,
      () =>
        new Observable<number>((subscriber) => {
          for (let nth = 0; nth < 100 && !subscriber.closed; nth++) {
            given.push(nth);
            subscriber.next(nth);
          }
          return () => (isOver = true);
        }),
    );
    const taken = ended(read$.pipe(take(2)));
    put('a');
    await taken;
    expect(given).toEqual([0, 1]);
    expect(isOver).toBe(true);
    await left();
  });

  it('has not caught up where nobody wanted all of it', async () => {
    const onCaughtUp = vi.fn();
    const { put, read$, ended } = await reading(1n, () => of(1, 2, 3), { onCaughtUp });
    const taken = ended(read$.pipe(take(2)));
    put('a');
    await taken;
    expect(onCaughtUp).not.toHaveBeenCalled();
  });

  it.each([
    ['at once', 0n],
    ['behind the last batch', 1n],
  ])('fails with what onCaughtUp throws %s, and closes the reader', async (_, end) => {
    const { put, left, ended } = await reading(end, () => [], { onCaughtUp: fail });
    const outcome = ended();
    put('a');
    await expect(outcome).rejects.toBe(failure);
    await left();
  });

  it('fails with what the handler throws, and closes the reader', async () => {
    const { put, left, ended } = await reading(1n, fail);
    const outcome = ended();
    put('a');
    await expect(outcome).rejects.toBe(failure);
    await left();
  });

  it('fails as stop$ does, and ends the batch in hand', async () => {
    const stop$ = new Subject<void>();
    const inHand$ = new Subject<void>();
    const { put, left, ended } = await reading(1n, () => inHand$, { stop$ });
    const outcome = ended();
    put('a');
    await vi.waitUntil(() => inHand$.observed);
    stop$.error(failure);
    await expect(outcome).rejects.toBe(failure);
    expect(inHand$.observed).toBe(false);
    await left();
  });

  it('stops behind the batch in hand', async () => {
    const stop$ = new Subject<void>();
    const inHand$ = new Subject<void>();
    const handle = vi.fn(() => inHand$);
    const { cluster, put, left, ended } = await reading(9n, handle, { stop$ });
    const outcome = ended();
    put('a');
    await vi.waitUntil(() => inHand$.observed);
    put('b');
    stop$.next();
    expect(cluster.open).toBeGreaterThan(0);
    inHand$.complete();
    await outcome;
    expect(handle).toHaveBeenCalledTimes(1);
    await left();
  });
});
