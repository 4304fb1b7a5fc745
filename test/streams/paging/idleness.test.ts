import { expect, it } from 'vitest';
import { Idleness } from '../../../src/streams/paging/idleness.ts';

const PAGE = { hasNewKey: undefined, hasNext: true, isShort: true, end: 9, pageSize: 5 };

it('a list without a total is endless after three pages in a row that bring nothing new, not after three in all', () => {
  const idleness = new Idleness();
  const read = (isIdle: boolean) => idleness.isOver({ ...PAGE, isIdle, total: undefined });
  const pages = [true, true, false, true, false, true, true, false].map(read);
  expect(pages).not.toContain(true);
  expect([true, true, true].map(read)).toEqual([false, false, true]);
});
