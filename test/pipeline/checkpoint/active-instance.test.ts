import { describe, expect, it } from 'vitest';
import { ledgerText } from '../../../src/account/ledger/ledger-record.ts';
import { newCursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import { findActiveInstance } from '../../../src/pipeline/checkpoint/active-instance.ts';
import type { TransactionalLog } from '../../../src/sinks/sink.ts';
import { hurriedTime } from '../../support/hurried-time.ts';

const BLOCK_MS = 10_000;

interface Declared {
  /** ms after the look began; 0: it was there before. */
  readonly at: number;
  readonly key: string;
  readonly blockMs?: number;
}

/** A ledger, and a cursor of an instance that has its name from when it first declared. */
function watched(declared: readonly Declared[], cursorOf = 'of 9800') {
  const { scheduler } = hurriedTime();
  const there = () => declared.filter(({ at }) => at <= scheduler.now());
  const broker: Partial<TransactionalLog> = {
    bounds: () => Promise.resolve(new Map([[0, { low: 0n, high: BigInt(there().length) }]])),
    readTail: ({ from, to, onMessages }) =>
      onMessages(
        there()
          .slice(Number(from.get(0)), Number(to.get(0)))
          .map(({ at, key, blockMs = BLOCK_MS }, place) => ({
            ...{ partition: 0, offset: String(place), key: Buffer.from(key) },
            value: Buffer.from(
              ledgerText({ instance: `of ${at}`, writers: [], blockMs, quotas: {} }),
            ),
          })),
      ),
    compacted: () => {
      const value = Buffer.from(JSON.stringify({ ...newCursor(cursorOf), heldSince: 17 }));
      const cursor = { offset: '0', timestamp: '0', key: null, value };
      return Promise.resolve({ newest: new Map([['default/orders', cursor]]), next: 1n });
    },
  };
  return findActiveInstance({
    ...{ log: broker as TransactionalLog, account: 'default', scheduler },
    ...{ ledgerTopic: 'wine.ledger', cursorTopic: 'wine.cursors' },
  });
}

describe('who runs an account', () => {
  it('is who declares requests while it is watched, and since when', async () => {
    const found = watched([
      { at: 0, key: 'default' },
      { at: 9_800, key: 'default' },
    ]);
    expect(await found).toEqual({ instance: 'of 9800', since: 17 });
  });

  it('is told where it has no cursor yet', async () => {
    const found = watched([{ at: 9_800, key: 'default' }], 'one before');
    expect(await found).toEqual({ instance: 'of 9800', since: undefined });
  });

  it.each<[string, Declared]>([
    ['one declared until just now, and no more', { at: 0, key: 'default' }],
    ['it says that it ends', { at: 500, key: 'default', blockMs: 0 }],
    ['it runs another account', { at: 500, key: 'cellar' }],
    ['it is a guest, or has only claimed', { at: 500, key: 'default/' }],
  ])('is nobody where %s', async (_, declared) => {
    expect(await watched([declared])).toBeUndefined();
  });
});
