import { describe, expect, it } from 'vitest';
import type { TransactionalLog } from '../../../src/sinks/transactional-log.ts';
import { newCursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import { livingInstance } from '../../../src/pipeline/checkpoint/living-instance.ts';
import { hurriedTime } from '../../support/hurried-time.ts';

/** Cursors of which each is there from a time on, ms after the look began; those at 0 were there before. */
function watched(written: readonly { readonly at: number; readonly task: string }[]) {
  const { scheduler } = hurriedTime();
  const there = () => written.filter(({ at }) => at <= scheduler.now());
  const broker: Partial<TransactionalLog> = {
    bounds: () => Promise.resolve(new Map([[0, { low: 0n, high: BigInt(there().length) }]])),
    readTail: ({ from, to, onMessages }) =>
      onMessages(
        there()
          .slice(Number(from.get(0)), Number(to.get(0)))
          .map(({ at, task }, place) => ({
            ...{ partition: 0, offset: String(place), key: Buffer.from(task) },
            value: Buffer.from(JSON.stringify({ ...newCursor(`of ${at}`), heldSince: 17 })),
          })),
      ),
  };
  const options = {
    log: broker as TransactionalLog,
    cursorTopic: 'wine.cursors',
    account: 'default',
  };
  return livingInstance({ ...options, scheduler });
}

describe('who runs an account', () => {
  it('is who writes a cursor while it is watched, and since when', async () => {
    const found = watched([
      { at: 0, task: 'default/orders' },
      { at: 9_800, task: 'default/orders' },
    ]);
    expect(await found).toEqual({ instance: 'of 9800', since: 17 });
  });

  it('is nobody where one wrote until just now, and no more', async () => {
    expect(await watched([{ at: 0, task: 'default/orders' }])).toBeUndefined();
  });

  it('is not who runs another account', async () => {
    expect(await watched([{ at: 500, task: 'cellar/orders' }])).toBeUndefined();
  });
});
