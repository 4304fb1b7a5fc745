import { describe, expect, it } from 'vitest';
import { keyOrderAfter } from '../../../src/streams/paging/reading-proofs.ts';
import type { KeyOrder } from '../../../src/streams/paging/reading-proofs.ts';
import { Body } from '../../../src/streams/http/body.ts';
import { PageRecord } from '../../../src/streams/records/page-record.ts';
import { PageRecords, PageRun } from '../../../src/streams/records/page-records.ts';
import { packRun, unpackRun } from '../../../src/state/run-entries.ts';

const record = (key: string) => PageRecord.ofJson({ id: key }, { key });
/** A run as it is read back from the store: its keys are bytes. */
const run = (...keys: readonly string[]) => {
  const members = keys.map((key, at) => ({ key, at, end: at + 1, updatedAt: null }));
  const [id, digest] = ['12345678', '1234567890abcdef'];
  const packed = packRun({ id, digest, length: keys.length, members });
  return new PageRun(unpackRun(id, packed), new Body(Buffer.alloc(keys.length)), 0);
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
