import { hash } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { JsonObject, JsonValue } from '../../../src/schemas/json/json.ts';
import {
  BEGINNING,
  contentDigests,
  joinPage as joinRecords,
} from '../../../src/streams/paging/anchors.ts';
import type { JoinOptions, JoinResult, Position } from '../../../src/streams/paging/anchors.ts';
import { Body } from '../../../src/streams/http/body.ts';
import { PageRecord } from '../../../src/streams/records/page-record.ts';
import { PageRecords } from '../../../src/streams/records/page-records.ts';
import { records } from '../../support/records.ts';
import { keyOfId, throughJson } from './moving-list.ts';

const options = { overlap: 2, keyOf: keyOfId };

const join = (
  at: Position,
  data: readonly PageRecord[],
  by: typeof options & Partial<JoinOptions>,
): JoinResult =>
  joinRecords(at, new PageRecords(data), { leftOut: [], contents: contentDigests(), ...by });

/** Records by their ids; `4'` is another version of 4. */
const page = (text: string): JsonObject[] =>
  text
    .split(' ')
    .map((word) => ({ id: Number.parseInt(word), version: word.endsWith("'") ? 2 : 1 }));

/** Where a scan stands that has read these pages. */
const after = (...texts: string[]): Position =>
  texts.reduce((at, text) => join(at, parsed(page(text)), options).next, BEGINNING);

const joint = (at: Position, text: string): JoinResult => join(at, parsed(page(text)), options);

/** Records of pages as they are once parsed. */
const parsed = (data: readonly JsonValue[]) => records(data, keyOfId);

/** The same, known by their bytes. */
const sent = (data: readonly JsonObject[]) =>
  data.map((record) => {
    const bytes = Buffer.from(JSON.stringify(record));
    const digest = hash('sha256', bytes, 'binary').slice(0, 16);
    return PageRecord.inBytes(
      { page: new Body(bytes), at: 0, end: bytes.length },
      {
        key: keyOfId(record),
        image: { kind: 'published' },
        digest: { digest, length: bytes.length, updatedAt: null },
      },
    );
  });

describe('a page joins', () => {
  it('at the beginning, whatever is in it', () => {
    expect(joint(BEGINNING, '1 2 3 4')).toMatchObject({ anchored: true, next: { offset: 2 } });
    expect(join(BEGINNING, [], options)).toMatchObject({ anchored: true });
  });

  it('when it shows a record that was read, unchanged', () => {
    expect(joint(after('1 2 3 4 5 6'), '5 6 7 8 9')).toMatchObject({
      anchored: true,
      swapped: false,
      adrift: false,
      lacksDigests: false,
      next: { offset: 4 + 3, stepsBack: 0 },
    });
    expect(joint(after('1 2 3 4 5 6'), '6 7 8 9')).toMatchObject({ anchored: true });
  });

  it('when it shows a record of a page before the last', () => {
    expect(joint(after('1 2 3 4 5 6', '5 6 7 8 9 10'), '3 4 99')).toMatchObject({ anchored: true });
  });

  it('when fields come in another order', () => {
    const turned = [{ version: 1, id: 6 }, ...page('7 8')];
    expect(join(after('1 2 3 4 5 6'), parsed(turned), options)).toMatchObject({ anchored: true });
  });

  it('when its records are known by their bytes, few of which are parsed', () => {
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parse.mockRestore());
    const first = page(Array.from({ length: 1_000 }, (_, id) => String(id)).join(' '));
    const wide = { ...options, overlap: 10 };
    const before = join(BEGINNING, sent(first), wide).next;
    expect(before.anchors[0]).toHaveLength(20);
    expect(parse).toHaveBeenCalledTimes(4);
    expect(join(before, sent([...first.slice(-10), ...page('1001 1002')]), wide)).toMatchObject({
      anchored: true,
    });
    expect(parse.mock.calls.length).toBeLessThan(12);

    const at = join(BEGINNING, sent(page('1 2 3 4 5 6')), options).next;
    expect(throughJson(at)).toEqual(at);
    expect(join(at, sent(page('5 6 7')), options)).toMatchObject({
      anchored: true,
      swapped: false,
    });
    expect(join(at, sent(page('6 5 7')), options)).toMatchObject({ swapped: true });
    expect(join(at, sent(page("5' 6' 7")), options)).toMatchObject({ anchored: false });
  });

  it('when a record that was known comes in other bytes', () => {
    const at = join(BEGINNING, sent(page('1 2 3 4 5 6')), options).next;
    const turned = [{ version: 1, id: 6 }, ...page('7 8')];
    expect(join(at, parsed(turned), options)).toMatchObject({ anchored: true });
    expect(join(at, sent(turned), options)).toMatchObject({ anchored: true });
    expect(join(at, sent([{ version: 2, id: 6 }]), options)).toMatchObject({ anchored: false });
  });

  it('when records that were parsed are known by now', () => {
    const at = after('1 2 3 4 5 6');
    expect(join(at, sent(page('5 6 7')), options)).toMatchObject({ anchored: true });
    expect(join(at, sent(page("5' 6' 7")), options)).toMatchObject({ anchored: false });
  });

  it('after its position has been through a cursor', () => {
    expect(joint(throughJson(after('1 2 3 4 5 6')), '5 6 7')).toMatchObject({ anchored: true });
  });
});

describe('a page does not join', () => {
  it.each([
    ['records that follow at a distance', '8 9 10'],
    ['records that have changed since', "5' 6' 7 8"],
    ['records made anew under their old keys', "6' 5' 4'"],
  ])('by %s', (_, text) => {
    const at = after('1 2 3 4 5 6');
    expect(joint(at, text)).toEqual({
      anchored: false,
      swapped: false,
      adrift: false,
      lacksDigests: false,
      next: { ...at, offset: 0, stepsBack: 1 },
    });
  });

  it('by nothing', () => {
    expect(join(after('1 2 3 4 5 6'), [], options)).toMatchObject({ anchored: false });
  });

  it('so the scan goes back page by page, eight times at most, then to the beginning', () => {
    const data = parsed(page('500 501 502 503 504'));
    const offsets: number[] = [];
    let at: Position = { offset: 1_000, step: 30, anchors: [[['1', 'x']]], stepsBack: 0 };
    let adrift = false;
    while (!adrift && offsets.length < 20) {
      ({ next: at, adrift } = join(at, data, options));
      offsets.push(at.offset);
    }
    expect(offsets).toEqual([970, 940, 910, 880, 850, 820, 790, 760, 0]);
    expect(at).toMatchObject({ stepsBack: 0 });
  });
});

describe('records that have not changed are seen to change places', () => {
  it('when two of one page come the other way round', () => {
    expect(joint(after('1 2 3 4 5 6'), '6 5 7 8')).toMatchObject({ anchored: true, swapped: true });
  });

  it('but not when one of them changed, and moved for that', () => {
    expect(joint(after('1 2 3 4 5 6'), "5 7 8 6'")).toMatchObject({ swapped: false });
    expect(joint(after('1 2 3 4 5 6'), "6 5' 7")).toMatchObject({ swapped: false });
  });
});

describe('a position', () => {
  it('moves on by what came, less the overlap', () => {
    expect(after('1 2 3 4 5 6 7')).toMatchObject({ offset: 5, step: 5 });
  });

  it('moves on by half a page at least, and by one record in any case', () => {
    expect(after('1 2 3')).toMatchObject({ offset: 2 });
    expect(after('1')).toMatchObject({ offset: 1 });
  });

  it('knows the last records of a page, and some of all the rest', () => {
    const data: JsonValue[] = Array.from({ length: 1_000 }, (_, id) => ({ id }));
    const { anchors } = join(BEGINNING, parsed(data), { ...options, overlap: 10 }).next;
    const known = anchors[0]!.map(([key]) => Number(key));
    expect(known).toEqual([
      ...[0, 100, 200, 300, 400, 500, 600, 700, 800, 900],
      ...[990, 991, 992, 993, 994, 995, 996, 997, 998, 999],
    ]);
  });

  it('knows the newest four pages', () => {
    const at = after('1 2 3 4', '3 4 5 6', '5 6 7 8', '7 8 9 10', '9 10 11 12');
    expect(at.anchors).toHaveLength(4);
    expect(joint(at, '1 2 99')).toMatchObject({ anchored: false });
    expect(joint(at, '3 4 99')).toMatchObject({ anchored: true });
  });

  it('knows a record without a key by the one before it', () => {
    const bare = (...names: string[]) => parsed(names.map((name) => ({ name })));
    const at = join(BEGINNING, bare('a', 'b', 'c', 'd'), options).next;
    expect(join(at, bare('c', 'd', 'e'), options)).toMatchObject({ anchored: true });
    expect(join(at, bare('x', 'd', 'e'), options)).toMatchObject({ anchored: false });
    expect(join(at, bare('d', 'e'), options)).toMatchObject({ anchored: false });
  });

  it('never knows the first record of a page without a key, which may stand anywhere', () => {
    const bare = { name: 'a' };
    const at = join(BEGINNING, parsed([bare, ...page('1 2 3')]), options).next;
    expect(throughJson(at)).toEqual(at); // nor has it a place in a cursor
    expect(join(at, parsed([bare, ...page('7 8 9')]), options)).toMatchObject({ anchored: false });
  });
});
