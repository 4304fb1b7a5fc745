import { describe, expect, it } from 'vitest';
import { newCursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import type { Cursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import {
  isTopicRecreated,
  detectLostEvents,
} from '../../../src/pipeline/checkpoint/detect-lost-events.ts';
import { lostEventsText } from '../../../src/observe/lost-events.ts';
import type { TaskMemory } from '../../../src/state/store.ts';
import { memory } from '../../support/task-memory.ts';

const TOPIC = 'wine.orders';

/** What is lost of a topic of which partition 0 and on have these offsets. */
function lost(
  bounds: readonly (readonly [low: number, high: number])[],
  cursor: Partial<Cursor>,
  store?: Partial<TaskMemory>,
) {
  const found = bounds.map(
    ([low, high], at) => [at, { low: BigInt(low), high: BigInt(high) }] as const,
  );
  return detectLostEvents(TOPIC, new Map(found), {
    cursor: { ...newCursor('one'), sequence: 9, ...cursor },
    memory: store && { ...memory, ends: {}, ...store },
  });
}

describe('lostEvents', () => {
  it('finds nothing in a topic that is as it was, or has grown', () => {
    const ends = { 0: '7', 1: '3' };
    expect(
      lost(
        [
          [0, 7],
          [0, 3],
        ],
        { ends },
      ),
    ).toBeUndefined();
    expect(
      lost(
        [
          [0, 8],
          [0, 3],
        ],
        { ends },
        { ends: { 0: '8', 1: '3' } },
      ),
    ).toBeUndefined();
  });

  it('finds what ends sooner than the cursor says, or the store, and a partition that is gone', () => {
    const ends = { 0: '7', 1: '3' };
    expect(
      lost(
        [
          [0, 7],
          [0, 1],
        ],
        { ends },
      )?.gaps,
    ).toEqual([{ partition: 1, kind: 'ends', before: 3n, now: 1n }]);
    expect(
      lost(
        [
          [0, 7],
          [0, 3],
        ],
        { ends },
        { ends: { 0: '9', 1: '3' } },
      )?.gaps,
    ).toEqual([{ partition: 0, kind: 'ends', before: 9n, now: 7n }]);
    expect(lost([[0, 7]], { ends })).toMatchObject({ offsets: 3 });
  });

  it('finds a beginning that was deleted, once', () => {
    const cut = lost([[5, 7]], { ends: { 0: '7' } });
    expect(cut?.gaps).toEqual([{ partition: 0, kind: 'begins', before: 0n, now: 5n }]);
    expect(lost([[5, 7]], { ends: { 0: '7' }, starts: { 0: '5' } })).toBeUndefined();
    expect(lost([[6, 7]], { ends: { 0: '7' }, starts: { 0: '5' } })).toMatchObject({ offsets: 1 });
  });

  it('knows of a cursor, whose own commit may be its first, and of an older one whether anything was published', () => {
    expect(lost([[0, 0]], {})).toEqual({ topic: TOPIC, gaps: [], offsets: 0 });
    expect(lost([[0, 0]], { ends: { 0: '0' } })).toBeDefined();
    expect(lost([[0, 0]], { ends: { 0: '0' }, lostSequence: 9 })).toBeUndefined();
    expect(lost([[0, 0]], { sequence: 0 })).toBeUndefined();
    expect(lost([[0, 2]], {})).toBeUndefined();
  });

  it('believes what the store was told, until a cursor says so', () => {
    expect(lost([[0, 7]], { ends: { 0: '7' } }, { ends: { 0: '7' }, lost: true })).toBeDefined();
    expect(lost([[0, 7]], { ends: { 0: '7' } }, { ends: { 0: '7' }, lost: false })).toBeUndefined();
  });
});

describe('isMadeAnew', () => {
  const ends = { 0: '10', 1: '4' };

  it('knows messages that follow what was there, in whichever partitions', () => {
    expect(isTopicRecreated(new Map([[0, 14n]]), ends, 3)).toBe(false);
    expect(
      isTopicRecreated(
        new Map([
          [0, 12n],
          [1, 7n],
          [2, 2n],
        ]),
        ends,
        4,
      ),
    ).toBe(false);
  });

  it('knows those that begin anew, be they more than were there', () => {
    expect(isTopicRecreated(new Map([[0, 4n]]), ends, 3)).toBe(true);
    expect(isTopicRecreated(new Map([[0, 1_001n]]), ends, 1_000)).toBe(true);
    expect(
      isTopicRecreated(
        new Map([
          [0, 12n],
          [1, 3n],
        ]),
        ends,
        3,
      ),
    ).toBe(true);
  });
});

describe('lossText', () => {
  it('names the topic, each partition with its offsets, and how it can have come', () => {
    const both = lost(
      [
        [0, 2],
        [3, 9],
      ],
      { ends: { 0: '7', 1: '9' } },
    )!;
    expect(lostEventsText(both)).toBe(
      'wine.orders has lost published events: partition 0 ends at 2 and not at 7 (5 offsets), partition 1 begins at 3 and not at 0 (3 offsets): the topic was deleted and recreated, or a broker without its newest messages became partition leader; records were deleted from its beginning, by hand or by a cleanup.policy with delete. The list is read again: missing records are published again with op r, without status changes',
    );
  });

  it('stays a line, however many partitions there are', () => {
    const ends = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [at, '5']));
    expect(lostEventsText(lost([], { ends })!)).toMatch(/partition 7 .*, and 492 more: the topic/);
  });
});
