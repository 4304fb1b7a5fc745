import type { Kafka } from 'kafkajs';
import { Observable, of, Subject, take } from 'rxjs';
import type { ObservableInput } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import type { PartitionBatch } from '../../../src/sinks/fetch/kafka-reader.ts';
import { readBatches } from '../../../src/sinks/fetch/read-batches.ts';
import type { ReadBatchesOptions } from '../../../src/sinks/fetch/read-batches.ts';
import { fakeReaders } from '../../support/fake-reader.ts';
import { jsonMessage } from '../../support/fake-topic.ts';

vi.mock(import('../../../src/sinks/fetch/kafka-reader.ts'), async (original) => ({
  ...(await original()),
  openReader: (await import('../../support/fake-reader.ts')).openFakeReader,
}));

/** One partition of so many messages is read; each batch is handled as it says. */
function reading<R>(
  end: bigint,
  handle: (batch: PartitionBatch) => ObservableInput<R>,
  options: Partial<ReadBatchesOptions> = {},
) {
  const read$ = readBatches(
    {
      kafka: {} as Kafka,
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
  return { read$, ended };
}

const newest = () => fakeReaders.at(-1)!;
const failure = new Error('no');
const fail = (): never => {
  throw failure;
};

describe('readBatches', () => {
  it('ends what a batch emits at once when nobody wants more, and closes the reader', async () => {
    const given: number[] = [];
    let isOver = false;
    const { read$, ended } = reading(
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
    newest().give(0, [jsonMessage(0, 'a')], 1n);
    await taken;
    expect(given).toEqual([0, 1]);
    expect(isOver).toBe(true);
    expect(newest().isClosed).toBe(true);
  });

  it('has not caught up where nobody wanted all of it', async () => {
    const onCaughtUp = vi.fn();
    const { read$, ended } = reading(1n, () => of(1, 2, 3), { onCaughtUp });
    const taken = ended(read$.pipe(take(2)));
    newest().give(0, [jsonMessage(0, 'a')], 1n);
    await taken;
    expect(onCaughtUp).not.toHaveBeenCalled();
  });

  it.each([
    ['at once', 0n],
    ['behind the last batch', 1n],
  ])('fails with what onCaughtUp throws %s, and closes the reader', async (_, end) => {
    const { ended } = reading(end, () => [], { onCaughtUp: fail });
    const outcome = ended();
    newest().give(0, [jsonMessage(0, 'a')], 1n);
    await expect(outcome).rejects.toBe(failure);
    expect(newest().isClosed).toBe(true);
  });

  it('fails with what the handler throws, and closes the reader', async () => {
    const { ended } = reading(1n, fail);
    const outcome = ended();
    newest().give(0, [jsonMessage(0, 'a')], 1n);
    await expect(outcome).rejects.toBe(failure);
    expect(newest().isClosed).toBe(true);
  });

  it('fails as stop$ does, and ends the batch in hand', async () => {
    const stop$ = new Subject<void>();
    const inHand$ = new Subject<void>();
    const { ended } = reading(1n, () => inHand$, { stop$ });
    const outcome = ended();
    newest().give(0, [jsonMessage(0, 'a')], 1n);
    expect(inHand$.observed).toBe(true);
    stop$.error(failure);
    await expect(outcome).rejects.toBe(failure);
    expect(inHand$.observed).toBe(false);
    expect(newest().isClosed).toBe(true);
  });

  it('stops behind the batch in hand', async () => {
    const stop$ = new Subject<void>();
    const inHand$ = new Subject<void>();
    const handle = vi.fn(() => inHand$);
    const outcome = reading(9n, handle, { stop$ }).ended();
    newest().give(0, [jsonMessage(0, 'a')], 1n);
    newest().give(0, [jsonMessage(1, 'b')], 2n);
    stop$.next();
    expect(newest().isClosed).toBe(false);
    inHand$.complete();
    await outcome;
    expect(handle).toHaveBeenCalledTimes(1);
    expect(newest().isClosed).toBe(true);
  });
});
