import { join } from 'node:path';
import { from, lastValueFrom, mergeMap, of, switchMap, toArray } from 'rxjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { listNamed, readDescription } from '../../src/exports/describe.ts';
import {
  keyOfFields,
  listRequest,
  pages,
  tokenBucket,
  tokenSource,
} from '../../src/exports/streams.ts';
import type { ScanTrouble } from '../../src/exports/streams.ts';
import { Chance } from '../support/chance.ts';
import type { ApiServer } from '../support/servers/api-server.ts';
import { startJsonServer } from '../support/servers/json-server.ts';
import { startLocalstripe, STRIPE_KEY } from '../support/servers/localstripe.ts';
import { Writer } from '../support/servers/writer.ts';

const RECORDS = 120;
const READINGS = 10;
const MOST_DELETED = 20;
const PAGE = 30;
const EXAMPLES = join(import.meta.dirname, '../../examples/apis');

/** One reading of a list while records are deleted between its pages. */
interface Reading {
  readonly read: ReadonlySet<string>;
  /** Keys that were there from beginning to end. */
  readonly stood: readonly string[];
  readonly troubles: readonly ScanTrouble[];
  readonly deleted: number;
  /** Number of records read, each as often as it was read. */
  readonly count: number;
}

type Reader = (
  beforePage: () => Promise<void>,
  onTrouble: (trouble: ScanTrouble) => void,
) => Promise<readonly string[]>;

/** The scan of the service, as the library has it. */
function scanOf(server: ApiServer, file: string, apiKey: string): Reader {
  const keyOf = keyOfFields(['id']);
  const list = listNamed(readDescription(join(EXAMPLES, file)), server.lists[0]!.name);
  const baseUrl = new URL(server.url);
  const tokens = tokenSource({
    login: of({ text: apiKey, askedAt: Date.now(), lifeMs: 3_600_000, serverTime: undefined }),
  });
  const request = listRequest({ baseUrl, list, tokens, keyOf });
  const quota = tokenBucket({ capacity: 1_000, windowMs: 1_000 });
  return (beforePage, onTrouble) => {
    const scan = pages({
      request: (page) => from(beforePage()).pipe(switchMap(() => request(page, quota))),
      ...{ list, keyOf, pageSize: PAGE, onTrouble },
    });
    const keys = scan.pipe(mergeMap(({ answer }) => answer.data.map(({ key }) => key!)));
    return lastValueFrom(keys.pipe(toArray()));
  };
}

/** Chooses records to delete before a page, of the keys that the reader has passed, in the order of the list. */
type Victims = (passed: readonly string[], chance: Chance) => readonly string[];

const anyPassed: Victims = (passed, chance) => chance.shuffled(passed).slice(0, 5);
/** The end of the page before, where the cursor of the next page is: each time more than an overlap. */
const lastPassed: Victims = (passed) => passed.slice(-10);

/** Deletes up to {@link MOST_DELETED} records under a reader. */
async function readWhileDeleted(
  reader: Reader,
  writer: Writer,
  seed: number,
  victims: Victims,
): Promise<Reading> {
  await writer.fill();
  const chance = new Chance(seed, 'deletions');
  const before = [...(await writer.truth()).keys()];
  let pagesRead = 0;
  let deleted = 0;
  const troubles: ScanTrouble[] = [];
  const keys = await reader(
    async () => {
      const passed = before.slice(0, PAGE * pagesRead).filter((key) => writer.keys.includes(key));
      pagesRead += 1;
      for (const key of victims(passed, chance)) {
        if (deleted >= MOST_DELETED) return;
        deleted += 1;
        await writer.remove(key);
      }
    },
    (trouble) => void troubles.push(trouble),
  );
  const after = await writer.truth();
  const stood = before.filter((key) => after.has(key));
  return { read: new Set(keys), stood, troubles, deleted, count: keys.length };
}

const missedIn = ({ read, stood }: Reading) => stood.filter((key) => !read.has(key)).length;

async function readings(
  reader: Reader,
  writer: Writer,
  victims: Victims,
): Promise<readonly Reading[]> {
  const all: Reading[] = [];
  for (let seed = 1; seed <= READINGS; seed += 1) {
    all.push(await readWhileDeleted(reader, writer, seed, victims));
  }
  return all;
}

describe('readings of json-server', () => {
  let server: ApiServer;
  let writer: Writer;
  beforeAll(async () => {
    server = await startJsonServer();
    writer = new Writer(server.lists[0]!, { rate: 1, seed: 1, records: RECORDS });
    return server.stop;
  });

  it('miss no record that stood still, where the usual loop over pages misses some', async () => {
    const scanned = await readings(scanOf(server, 'json-server.yaml', 'none'), writer, anyPassed);
    expect(scanned.map(({ deleted }) => deleted)).toEqual(Array(READINGS).fill(MOST_DELETED));
    expect(scanned.map(missedIn)).toEqual(Array(READINGS).fill(0));

    const usualLoop: Reader = async (beforePage) => {
      const keys: string[] = [];
      for (let page = 1; ; page += 1) {
        await beforePage();
        const address = `${server.url}/wines?_page=${page}&_limit=${PAGE}&_sort=id`;
        const records = (await (await fetch(address)).json()) as { id: number }[];
        if (records.length === 0) return keys;
        keys.push(...records.map(({ id }) => String(id)));
      }
    };
    const looped = await readings(usualLoop, writer, anyPassed);
    const missed = looped.map(missedIn).reduce((sum, count) => sum + count, 0);
    const stood = looped.reduce((sum, each) => sum + each.stood.length, 0);
    console.log(`the usual loop missed ${missed} of ${stood} records that stood still`);
    expect(missed).toBeGreaterThan(0);
  });
});

describe('readings of localstripe', () => {
  let server: ApiServer;
  let writer: Writer;
  beforeAll(async () => {
    server = await startLocalstripe();
    writer = new Writer(server.lists[0]!, { rate: 1, seed: 1, records: RECORDS });
    return server.stop;
  });

  it('do not begin anew silently where the record of the cursor was deleted', async () => {
    const { url } = server;
    await writer.fill();
    const [first, second] = [...(await writer.truth()).keys()];
    const firstBehind = async (key: string) => {
      const headers = { authorization: `Bearer ${STRIPE_KEY}` };
      const address = `${url}/v1/customers?limit=1&starting_after=${key}`;
      const { data } = (await (await fetch(address, { headers })).json()) as {
        data: { id: string }[];
      };
      return data[0]!.id;
    };
    await writer.remove(second!);
    expect(await firstBehind(second!)).toBe(first); // the server does begin anew

    const reader = scanOf(server, 'stripe.yaml', STRIPE_KEY);
    const scanned = await readings(reader, writer, lastPassed);
    expect(scanned.map(missedIn)).toEqual(Array(READINGS).fill(0));
    expect(scanned.map(({ deleted }) => deleted)).toEqual(Array(READINGS).fill(MOST_DELETED));
    for (const { count, troubles } of scanned) {
      console.log(`${count} read of ${RECORDS}: ${troubles.join()}`);
      expect(troubles).not.toEqual([]); // a page from the front was noticed
    }
  });

  it('miss no record that stood still', async () => {
    const reader = scanOf(server, 'stripe.yaml', STRIPE_KEY);
    const scanned = await readings(reader, writer, anyPassed);
    expect(scanned.map(missedIn)).toEqual(Array(READINGS).fill(0));
  });
});
