import { firstValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { compareBatches } from '../../src/pipeline/compare-batches.ts';
import { formRuns } from '../../src/pipeline/publish/form-runs.ts';
import type { ReadBatch, RefetchBatch } from '../../src/pipeline/reads/read-batch.ts';
import type { Run } from '../../src/state/store.ts';
import { digestDecoder, parsingDecoder } from '../../src/streams/decode/decoder.ts';
import { decodedPage } from '../../src/streams/decode/decoded-page.ts';
import { ResponseLayout } from '../../src/streams/decode/response-layout.ts';
import type { DecodedPage } from '../../src/streams/decode/response.ts';
import { Body } from '../../src/streams/http/body.ts';
import { Confirmations } from '../../src/streams/diff/confirmations.ts';
import { LogicalClock } from '../../src/streams/http/logical-clock.ts';
import { keyOfFields } from '../../src/streams/records/key-of.ts';
import { splitPageRecords } from '../../src/streams/records/records.ts';
import { storedRuns } from '../support/stored-runs.ts';
import { WINE_STAMPS } from '../support/records.ts';

const keyFields = ['id'];
const keyOf = keyOfFields(keyFields);
const codec = {
  encode: (record: object) => Buffer.from(JSON.stringify(record)),
  decode: (bytes: Buffer) => JSON.parse(bytes.toString()) as Record<string, string>,
};

const layout = new ResponseLayout(listNamed(WINE, 'orders'));

function decoded(ids: readonly number[], runs: readonly Run[]) {
  const pagination = { total_records: ids.length, has_next_page: false };
  const text = JSON.stringify({ data: ids.map((id) => ({ id, text: 't' })), pagination });
  const knownRun = storedRuns(runs);
  const known = () => undefined;
  const decode = digestDecoder(
    { keyFields, keyOf, stamps: WINE_STAMPS, payloadDigestOf: known, knownRun },
    parsingDecoder(keyOf),
  );
  const steps = decodedPage({ body: new Body(Buffer.from(text)), headers: {} }, layout, decode);
  let step = steps.next();
  while (!step.done) step = steps.next();
  return (step.value as DecodedPage).records;
}

describe('a page whose turn has come', () => {
  const ids = [1, 2, 3, 4, 5, 6, 7, 8];
  const [run, ...others] = formRuns(decoded(ids, []).parts, () => true);

  /** What is looked at as a run, and what one by one. */
  const compared = async (page: readonly number[], isLive = true) => {
    const split = splitPageRecords(decoded(page, [run!]));
    const clock = new LogicalClock();
    const span = clock.answered(clock.begin());
    const settle = () => undefined;
    const batch: RefetchBatch = { lane: 'reread', ...split, span, settle };
    const difference = await firstValueFrom(
      of<ReadBatch[]>(batch).pipe(
        compareBatches({
          task: { list: {}, config: { poll: {} } } as never,
          store: {
            ...{ get: () => undefined, payloadDigest: () => undefined, isUnseen: () => false },
            run: () => (isLive ? { lastSeenSweep: 1, lastReadSweep: 1 } : undefined),
          },
          evolution: { values: codec },
          images: { get: (key) => codec.encode({ id: Number(key), text: 't' }) },
          stamps: WINE_STAMPS,
          ...{ clock, volatile: undefined, personal: undefined, wasEmpty: false },
          confirmations: new Confirmations({ now: () => 0 }),
          snapshot: () => ({ startedAt: 0, position: null, done: true }),
        }),
      ),
    );
    const { read, changes, unchanged } = difference;
    return {
      runs: read.runs.length,
      keys: read.keys.map(Number),
      changes: changes.length,
      unchanged,
    };
  };

  it('has its runs, and the keys of what is in none', async () => {
    expect(others).toEqual([]);
    expect(await compared([...ids, 9])).toEqual({ runs: 1, keys: [9], changes: 0, unchanged: 9 });
  });

  it('has all of them one by one, where the run was retired since it was decoded', async () => {
    const all = { runs: 0, keys: ids, changes: 0, unchanged: 8 };
    expect(await compared(ids, false)).toEqual(all);
  });

  it('has each key once, where one of the run comes before it, too', async () => {
    const keys = [8, 1, 2, 3, 4, 5, 6, 7];
    const all = { runs: 0, keys, changes: 0, unchanged: 8 };
    expect(await compared([8, ...ids])).toEqual(all);
  });
});
