import { expect, it } from 'vitest';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import type { Anchor } from '../../../src/streams/paging/anchors.ts';
import { Standstill } from '../../../src/streams/paging/standstill.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { PageRecord } from '../../../src/streams/records/page-record.ts';
import { PageRecords } from '../../../src/streams/records/page-records.ts';
import { Stamps } from '../../../src/streams/records/stamps.ts';

const ANCHOR: Anchor = ['1', 'its digest'];
const keyOf = keyOfFields(['id']);

/** Fields found to differ in every response, when a page that had joined fails to join three times, as `later` shows it. */
function found(stamps: Stamps, first: JsonObject, later: (nth: number) => JsonObject) {
  const page = (json: JsonObject) =>
    new PageRecords([PageRecord.ofJson(json, { key: keyOf(json), stamps })]);
  const standstill = new Standstill();
  standstill.failed(page(first), []);
  standstill.joined(0, page(first), [ANCHOR]);
  standstill.failed(page(first), []);
  standstill.joined(0, page(first), [ANCHOR]);
  return [2, 3, 4, 5].flatMap((nth) => standstill.failed(page(later(nth)), []));
}

it("compares records whose modification time in the list's own field is equal", () => {
  const stamps = new Stamps({ updated: ['modified'] });
  const first = { id: 1, modified: 'a', updated_at: 'a', url: 1 };
  expect(found(stamps, first, (nth) => ({ ...first, updated_at: 'b', url: nth }))).toContain(
    '/url',
  );
  expect(found(stamps, first, (nth) => ({ ...first, modified: 'b', url: nth }))).toEqual([]);
});

it('compares all records of a list without modification times', () => {
  const first = { id: 1, modified: 'a', url: 1 };
  const none = new Stamps({ updated: [] });
  expect(found(none, first, (nth) => ({ ...first, modified: 'b', url: nth }))).toContain('/url');
});
