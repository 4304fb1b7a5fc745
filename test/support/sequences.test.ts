import { describe, expect, it } from 'vitest';
import { checkSequences } from './sequences.ts';

/** An event of a key in a partition; a tombstone has no sequence. */
const event = (sequence: number | null, partition = 0, key = 'a') => ({
  key,
  partition,
  offset: BigInt(sequence ?? 0),
  value: sequence === null ? null : { source: { sequence } },
});
const cursor = (sequence: number) => ({ value: { sequence } });

describe('the numbers of a list', () => {
  it('are as they should be over all partitions, with tombstones between', () => {
    const events = [event(1), event(4), event(null), event(2, 1), event(3, 1, 'b'), event(5, 2)];
    const found = checkSequences(events, [cursor(0), cursor(2), cursor(2), cursor(5)]);
    expect(found).toEqual({ violations: [], missing: [] });
  });

  it('are there once: not in another partition either, nor right behind', () => {
    const again = [event(1), event(2), event(2), event(1, 1, 'b')];
    expect(checkSequences(again, [cursor(2)]).violations).toEqual([
      'a at 0/2: sequence 2 is there twice: of a at 0/2 as well',
      'b at 1/1: sequence 1 is there twice: of a at 0/1 as well',
    ]);
  });

  it('rise in each partition, whatever the keys', () => {
    const { violations, missing } = checkSequences(
      [event(1), event(3), event(2, 0, 'b')],
      [cursor(3)],
    );
    expect(violations).toEqual(['b at 0/2: sequence 2 comes after 3']);
    expect(missing).toEqual([]);
  });

  it('have no gap: an event that was lost, at the end too', () => {
    const lost = checkSequences([event(1), event(4, 1)], [cursor(4)]);
    expect(lost.missing).toEqual(['sequence 2 is not there', 'sequence 3 is not there']);
    const lostLast = checkSequences([event(1)], [cursor(1), cursor(3)]);
    expect(lostLast.missing).toEqual(['the last cursor is at 3, the last event at 1']);
  });

  it('are not committed without their cursor', () => {
    expect(checkSequences([event(1), event(2)], [cursor(1)]).missing).toHaveLength(1);
  });

  it('never fall in the cursors', () => {
    expect(checkSequences([event(1), event(2)], [cursor(2), cursor(1), cursor(2)])).toEqual({
      violations: ['a cursor at 1 comes after one at 2'],
      missing: [],
    });
  });
});
