import { describe, expect, it } from 'vitest';
import { packRun, StoredRun } from '../../../src/state/run-entries.ts';
import { Body } from '../../../src/streams/http/body.ts';
import { keyOrderAfter, mayBeCut } from '../../../src/streams/paging/reading-proofs.ts';
import type { KeyOrder } from '../../../src/streams/paging/reading-proofs.ts';
import { PageRecord, PageRun } from '../../../src/streams/records/page-record.ts';
import { PageRecords } from '../../../src/streams/records/page-records.ts';

const record = (key: string) => PageRecord.ofJson({ id: key }, { key });
/** A run as it is read back from the store: its keys are bytes. */
const run = (...keys: readonly string[]) => {
  const members = keys.map((key, at) => ({ key, at, end: at + 1, updatedAt: null }));
  const [id, digest] = ['12345678', '1234567890abcdef'];
  const packed = packRun(id, { id, digest, length: keys.length, members });
  return new PageRun(new StoredRun(id, packed), new Body(Buffer.alloc(keys.length)), 0);
};
const orderOf = (...parts: ConstructorParameters<typeof PageRecords>[0]) =>
  keyOrderAfter(null, new PageRecords(parts));

describe('the order of keys', () => {
  it.each<[readonly string[], KeyOrder]>([
    [['8', '9', '10', '100'], 'asc'],
    [['100', '10', '9'], 'desc'],
    [['1', '1'], null],
    [['1', '2', '1'], 'none'],
    [['a10', 'a9', 'b'], 'asc'],
    [['010', '09', '1'], 'asc'],
    [['z', 'é', '中', '🍷'], 'asc'],
    [['🍷', '中', 'é'], 'desc'],
    [['', '0'], 'asc'],
  ])('of %j is %s, whether they are known with their run or not', (keys, order) => {
    expect(orderOf(...keys.map(record))).toBe(order);
    expect(orderOf(run(...keys))).toBe(order);
    const [first, ...others] = keys;
    expect(orderOf(record(first!), run(...others))).toBe(order);
  });

  it('of a later page that contradicts is none, for good', () => {
    const ascending = orderOf(record('1'), record('2'));
    const contradicted = keyOrderAfter(ascending, new PageRecords([run('9', '8')]));
    expect(contradicted).toBe('none');
    expect(keyOrderAfter(contradicted, new PageRecords([run('1', '2')]))).toBe('none');
  });
});

describe('whether a list may be cut off at its total', () => {
  const at = (top: number, more: Partial<Parameters<typeof mayBeCut>[0]> = {}) =>
    mayBeCut({ top, peak: top, lacksMass: false, fitsOnePage: false, ...more });

  it.each([20, 50, 100, 128, 250, 500, 999, 1_000, 1_023, 1_024, 4_096, 9_999, 10_000, 65_535])(
    'it may at %d, the highest total so far',
    (total) => {
      expect(at(total)).toBe(true);
    },
  );

  it.each([0, 1, 8, 10, 16, 19, 21, 99, 321, 1_001, 10_001, 9_998])(
    'it is whole at %d',
    (total) => {
      expect(at(total)).toBe(false);
    },
  );

  it('it is whole below a total that was seen before', () => {
    expect(at(10_000, { peak: 10_001 })).toBe(false);
  });

  it('it may below it, too, where much vanished at once: another server may have another cap', () => {
    expect(at(5_000, { peak: 9_000, lacksMass: true })).toBe(true);
    expect(at(5_001, { peak: 9_000, lacksMass: true })).toBe(false);
  });

  it('it is whole where it does not fill its only page', () => {
    expect(at(40, { fitsOnePage: true })).toBe(false);
  });
});
