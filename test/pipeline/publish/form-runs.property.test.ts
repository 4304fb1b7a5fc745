import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formRuns } from '../../../src/pipeline/publish/form-runs.ts';
import type { Run } from '../../../src/state/store.ts';
import { digestDecoder, parsingDecoder } from '../../../src/streams/decode/decoder.ts';
import { decodedPage } from '../../../src/streams/decode/decoded-page.ts';
import { Body } from '../../../src/streams/http/body.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import type { PageRecord } from '../../../src/streams/records/page-record.ts';
import { storedRuns } from '../../support/stored-runs.ts';
import { WINE_STAMPS } from '../../support/records.ts';

const keyFields = ['id'];
const keyOf = keyOfFields(keyFields);

interface Item {
  readonly id: number;
  readonly text: string;
}

/** The records of a page, decoded with these runs; how many were looked at one by one is told. */
function decoded(items: readonly Item[], runs: readonly Run[], before = '') {
  let alone = 0;
  const parse = parsingDecoder(keyOf, WINE_STAMPS);
  const decode = digestDecoder(
    {
      ...{ keyFields, keyOf, stamps: WINE_STAMPS, payloadDigestOf: () => undefined },
      knownRun: storedRuns(runs),
    },
    (page, at) => {
      alone += 1;
      return parse(page, at);
    },
  );
  const pagination = { total_records: items.length, has_next_page: false };
  const text = `{${before}${JSON.stringify({ data: items, pagination }).slice(1)}`;
  const steps = decodedPage(new Body(Buffer.from(text)), decode);
  let step = steps.next();
  while (!step.done) step = steps.next();
  return { records: step.value!.records.all(), alone };
}

const formed = (records: readonly PageRecord[]) => formRuns(records, () => true);
const jsonOf = (records: readonly PageRecord[]) => records.map(({ json }) => json);
const items = (count: number, from = 0): Item[] =>
  Array.from({ length: count }, (_, nth) => ({ id: from + nth, text: `"é ${nth % 7}` }));

describe('runs of a page', () => {
  it('are all that is looked at, as long as nothing in the page changes', () => {
    const page = items(1_000);
    const runs = formed(decoded(page, []).records);
    expect(runs.length).toBeGreaterThan(5);
    expect(runs.length).toBeLessThan(40);
    const { records, alone } = decoded(page, runs);
    expect(alone).toBe(0);
    expect(jsonOf(records)).toEqual(page);
    expect(records.map(({ key }) => key)).toEqual(page.map(({ id }) => String(id)));
  });

  it('survive what is put in front of them, and what is taken out of another one', () => {
    const page = items(1_000);
    const runs = formed(decoded(page, []).records);
    const shifted = [...items(3, 5_000), ...page.slice(0, 400), ...page.slice(401)];
    const { records, alone } = decoded(shifted, runs);
    expect(jsonOf(records)).toEqual(shifted);
    expect(alone).toBeLessThanOrEqual(3 + 256);
  });

  it('are of records that stand side by side: nothing that is left out is within one', () => {
    const page = items(40);
    const { records } = decoded(page, []);
    const runs = formRuns(records, ({ key }) => key !== '17');
    const within = runs.flatMap(({ members }) => members.map(({ key }) => Number(key)));
    expect(within).not.toContain(17);
    for (const { members, length } of runs) {
      const keys = members.map(({ key }) => Number(key));
      expect(keys).toEqual(keys.map((_, nth) => keys[0]! + nth));
      expect(members.at(-1)!.end).toBe(length);
    }
  });

  it('are none of a page of another layout, whose records stand each in bytes of their own', () => {
    const page = items(40);
    const { records } = decoded(page, [], '"p\\u0061ge":1,');
    expect(jsonOf(records)).toEqual(page);
    expect(new Set(records.map(({ bytes }) => bytes!.page)).size).toBe(40);
    expect(formed(records)).toEqual([]);
  });

  it('never make a record say what it does not', () => {
    const text = fc.constantFrom<string[]>('', 'a', '"', '},{"id":1', 'é');
    const change = fc.record({
      at: fc.nat(60),
      kind: fc.constantFrom('remove' as const, 'insert' as const, 'change' as const),
      text,
    });
    fc.assert(
      fc.property(
        fc.array(fc.record({ id: fc.nat(200), text }), { maxLength: 60 }),
        fc.array(change, { maxLength: 4 }),
        (before, changes) => {
          const runs = formed(decoded(before, []).records);
          const page = [...before];
          for (const { at, kind, text: said } of changes) {
            if (kind === 'insert') page.splice(at, 0, { id: 300 + at, text: said });
            if (kind === 'remove') page.splice(at, 1);
            const changed = page[at];
            if (kind === 'change' && changed) page[at] = { ...changed, text: `${said}!` };
          }
          const { records } = decoded(page, runs);
          expect(jsonOf(records)).toEqual(page);
          expect(records.map(({ key }) => key)).toEqual(page.map(({ id }) => String(id)));
          for (const { digest, run } of records) if (run) expect(digest).toBeDefined();
        },
      ),
      { numRuns: 300 },
    );
  });
});
