import { delay, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import { ignoredFields } from '../../../src/streams/paging/standstill.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import type { PagesOptions, ScanPage } from '../../../src/streams/paging/pages.ts';
import type { ScanTrouble } from '../../../src/streams/paging/scan-trouble.ts';
import { virtualTime } from '../../support/virtual-time.ts';
import { answer, keyOfId, throughJson } from '../paging/moving-list.ts';

interface Outcome {
  readonly pages: ScanPage[];
  readonly offsets: number[];
  readonly troubles: ScanTrouble[];
  /** Fields that were told, each time. */
  readonly told: (readonly string[])[];
  readonly isDone: boolean;
}

/** A list as it is at the nth request; 1 is the first. */
type List = (request: number) => readonly JsonValue[];

/** Reads a list in pages of 20, half of which overlap, until it ends or has been asked for 60 times. */
function scanOf(list: List, options: Partial<PagesOptions> = {}): Outcome {
  const outcome: Outcome & { isDone: boolean } = {
    pages: [],
    offsets: [],
    troubles: [],
    told: [],
    isDone: false,
  };
  virtualTime().run(() => {
    const scan = pages({
      request: ({ offset, pageSize }) => {
        const records = list(outcome.offsets.push(offset));
        const envelope = {
          total: records.length,
          hasNext: offset + pageSize < records.length,
        };
        return of(answer(records.slice(offset, offset + pageSize), envelope)).pipe(delay(1));
      },
      keyOf: keyOfId,
      pageSize: 20,
      leftOut: ignoredFields([], (fields) => outcome.told.push(fields)),
      onTrouble: (trouble) => outcome.troubles.push(trouble),
      ...options,
    }).subscribe({
      next: (page) => {
        outcome.pages.push(page);
        if (outcome.pages.length === 60) scan.unsubscribe();
      },
      complete: () => (outcome.isDone = true),
    });
  });
  return outcome;
}

const range = (count: number, record: (id: number) => JsonObject) =>
  Array.from({ length: count }, (_, id) => record(id));
const idsOf = ({ pages: all }: Outcome) =>
  new Set(all.flatMap(({ answer: { data } }) => data.map(({ key }) => key)));

const stamped = (id: number) => ({ id, updated_at: `2026-03-05T12:00:${10 + (id % 50)}Z` });

describe('a list in which a field differs in every answer', () => {
  it.each<[string, (id: number, nth: number) => JsonObject, string]>([
    ['a pre-signed address', (id, nth) => ({ ...stamped(id), url: `x?${nth}` }), '/url'],
    ['without an updated_at', (id, nth) => ({ id, name: `n${id}`, ago: nth }), '/ago'],
    ['and nothing but the key besides', (id, nth) => ({ id, url: `x?${nth}` }), '/url'],
    [
      'in an object',
      (id, nth) => ({ id, name: `n${id}`, 'a/b': { kept: 1, seen: nth } }),
      '/a~1b/seen',
    ],
    [
      'in the elements of an array',
      (id, nth) => ({
        id,
        name: `n${id}`,
        images: [
          { n: 1, url: nth },
          { n: 2, url: -nth },
        ],
      }),
      '/images/url',
    ],
    [
      'that comes and goes',
      (id, nth) => ({ id, name: `n${id}`, ...(nth % 2 === 0 && { seen: nth }) }),
      '/seen',
    ],
  ])('is read to its end, and told by name: %s', (_, recordAt, pointer) => {
    const found = scanOf((nth) => range(95, (id) => recordAt(id, nth)));
    expect(found).toMatchObject({ isDone: true, told: [[pointer]] });
    expect(idsOf(found).size).toBe(95);
    expect(found.offsets.slice(0, 8)).toEqual([0, 10, 0, 10, 0, 10, 0, 10]);
    expect(found.offsets.slice(8)).toEqual([20, 30, 40, 50, 60, 70, 80]);
  });

  it('is read without a step back when the field is set', () => {
    const list = (nth: number) => range(95, (id) => ({ ...stamped(id), url: nth }));
    const found = scanOf(list, { leftOut: ignoredFields(['/url']) });
    expect([found.isDone, found.troubles]).toEqual([true, []]);
  });

  it('is found out once: later scans know, and so does a scan that goes on elsewhere', () => {
    const list = (nth: number) => range(95, (id) => ({ ...stamped(id), url: nth }));
    const told: (readonly string[])[] = [];
    const known = ignoredFields([], (fields) => told.push(fields));
    const first = scanOf(list, { leftOut: known });
    expect(scanOf(list, { leftOut: known }).troubles).toEqual([]);
    expect(told).toEqual([['/url']]);

    const from = throughJson(first.pages.at(-3)!.next!);
    const on = scanOf((nth) => list(nth + 100), { from });
    expect(on).toMatchObject({ isDone: true, troubles: [], told: [['/url']] });
    expect(on.offsets).toEqual([70, 80]);
  });

  it('is found out in the middle too, where the records begin to have the field', () => {
    const found = scanOf((nth) =>
      range(95, (id) => ({ ...stamped(id), ...(id > 40 && { url: nth }) })),
    );
    expect(found).toMatchObject({ isDone: true, told: [['/url']] });
    expect(idsOf(found).size).toBe(95);
    expect(found.troubles).not.toContain('adrift');
  });

  it('tells several fields, if no record has them all', () => {
    const found = scanOf((nth) =>
      range(95, (id) => ({ ...stamped(id), [id % 2 === 0 ? 'even' : 'odd']: nth })),
    );
    expect(found).toMatchObject({ isDone: true, told: [['/even', '/odd']] });
  });

  it('names no name that only one record has', () => {
    const found = scanOf((nth) => range(95, (id) => ({ ...stamped(id), by: { [`j${id}`]: nth } })));
    expect(found).toMatchObject({ isDone: true, told: [['/by']] });
  });

  it('does not take a record that was changed, and has moved, for an anchor', () => {
    // At the end of the first page is a record that the next request finds further back, changed.
    const list = (nth: number) => {
      const records = range(95, (id) => ({ ...stamped(id), url: nth }));
      if (nth < 9) return records;
      const removed = records.slice(20);
      const moved = { id: 19, updated_at: '2026-03-05T13:00:00Z', url: nth };
      return [...removed.slice(0, 15), moved, ...removed.slice(15)];
    };
    const found = scanOf(list, { leftOut: ignoredFields(['/url']) });
    const late = scanOf((nth) => list(nth + 7), { leftOut: ignoredFields(['/url']) });
    expect([found.isDone, late.isDone]).toEqual([true, true]);
    expect(late.troubles).toContain('stepped-back');
    expect(idsOf(late).size).toBe(95);
  });

  it('does not know a record by its key alone', () => {
    // Twenty are removed behind the first page, and one that it has read is found behind the gap.
    const list = (nth: number) => {
      const records = range(95, (id) => ({ id, url: nth }));
      return nth === 1 ? records : [...records.slice(35, 45), records[15]!, ...records.slice(45)];
    };
    const found = scanOf(list, { leftOut: ignoredFields(['/url']) });
    expect(found.troubles).toContain('stepped-back');
    expect(found.isDone).toBe(true);
    expect(idsOf(found).has('36')).toBe(true);
  });
});

it('leaves out no more than fifty fields, whatever names a list gives them', () => {
  const known = ignoredFields(['/set']);
  for (let n = 0; n < 100; n++) known.add([`/f${n}`]);
  expect(known.fields()).toHaveLength(51);
});

describe('a list that moves, in which no field differs by itself', () => {
  it('has none that is left out, though everything is being changed', () => {
    const found = scanOf((nth) =>
      range(95, (id) => ({ id, version: nth, updated_at: `2026-03-05T12:00:${10 + nth}Z` })),
    );
    expect(found).toMatchObject({ isDone: false, told: [] });
    expect(found.pages.every(({ next }) => next?.leftOut === undefined)).toBe(true);
  });
});
