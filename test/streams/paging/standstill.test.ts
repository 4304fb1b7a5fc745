import { expect, it } from 'vitest';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import type { Anchor } from '../../../src/streams/paging/anchors.ts';
import { Standstill } from '../../../src/streams/paging/standstill.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { PageRecord } from '../../../src/streams/records/page-record.ts';
import { PageRecords } from '../../../src/streams/records/page-records.ts';
import { Stamps } from '../../../src/streams/records/stamps.ts';

const ANCHORS: readonly Anchor[] = [
  ['1', 'its digest'],
  ['2', 'its digest'],
];
const keyOf = keyOfFields(['id']);

/** Fields found to differ in every response, when a page of two records that had joined fails to join three times, as `later` shows it. */
function found(stamps: Stamps, first: JsonObject, later: (nth: number, id: number) => JsonObject) {
  const page = (jsonOf: (id: number) => JsonObject) =>
    new PageRecords(
      [1, 2].map((id) => {
        const json = { ...jsonOf(id), id };
        return PageRecord.ofJson(json, { key: keyOf(json), stamps });
      }),
    );
  const standstill = new Standstill();
  for (let nth = 0; nth < 2; nth += 1) {
    standstill.failed(
      page(() => first),
      [],
    );
    standstill.joined(
      0,
      page(() => first),
      ANCHORS,
    );
  }
  return [2, 3, 4, 5].flatMap((nth) =>
    standstill.failed(
      page((id) => later(nth, id)),
      [],
    ),
  );
}

it("compares records whose modification time in the list's own field is equal", () => {
  const stamps = new Stamps({ updated: ['modified'] });
  const first = { modified: 'a', updated_at: 'a', url: 1 };
  expect(found(stamps, first, (nth) => ({ ...first, updated_at: 'b', url: nth }))).toContain(
    '/url',
  );
  expect(found(stamps, first, (nth) => ({ ...first, modified: 'b', url: nth }))).toEqual([]);
});

it('compares all records of a list without modification times', () => {
  const first = { modified: 'a', url: 1 };
  const none = new Stamps({ updated: [] });
  expect(found(none, first, (nth) => ({ ...first, modified: 'b', url: nth }))).toContain('/url');
});

it('does not name a field that differs in a single record, which may be a key of a map', () => {
  const none = new Stamps({ updated: [] });
  const seenBy = (id: number) => `user${id}@example.com`;
  const viewers = (nth: number, ...ids: number[]) =>
    Object.fromEntries(ids.map((id) => [seenBy(id), nth]));
  const first = { url: 1, viewers: viewers(1, 1, 2) };
  const later = (nth: number, id: number) => ({
    url: nth,
    viewers: { ...first.viewers, ...viewers(nth, id) },
  });
  expect(found(none, first, later)).toEqual(['/url', '/viewers']);
});
