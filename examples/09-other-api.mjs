// @ts-check
// Another API from end to end: a json-server with 250 wines in three pages, described by apis/json-server.yaml. Its changes are printed.
//
//     npm run example:09         # needs no demo, and ends by itself
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import jsonServer from 'json-server';
import { exhaustMap, finalize, map, mergeMap, take, timer, toArray } from 'rxjs';
import { listNamed, readDescription } from 'cellarstream/describe';
import { consoleSink, diff, keyOfFields, listRequest } from 'cellarstream/streams';
import { pages, splitRecords, staticCredentials, tokenBucket } from 'cellarstream/streams';

const wines = Array.from({ length: 250 }, (_, n) => ({ id: n + 1, name: `wine ${n + 1}` }));
const router = jsonServer.router({ wines });
const server = createServer(jsonServer.create().use(router)).listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
const baseUrl = new URL(`http://127.0.0.1:${port}`);

const file = fileURLToPath(import.meta.resolve('./apis/json-server.yaml'));
const description = readDescription(file);
const list = listNamed(description, 'wines');
const keyOf = keyOfFields(['id']);
const quota = tokenBucket({ capacity: 600, windowMs: 60_000 });
const tokens = staticCredentials({ auth: description.auth, variables: () => ({}) });
const request = listRequest({ baseUrl, list, tokens, keyOf });

const table = router.db.get('wines');
const story = [
  () => table.find({ id: 7 }).assign({ name: 'Malbec' }).write(),
  () => table.push({ id: 251, name: 'Syrah' }).write(),
  () => table.remove({ id: 3 }).write(),
];
/** @type {string[]} */
let before = [];

timer(0, 100)
  .pipe(
    exhaustMap(() =>
      pages({ request: (page) => request(page, quota), keyOf, list }).pipe(toArray()),
    ),
    map((scan) => {
      story.shift()?.();
      const records = scan.flatMap(({ answer }) => splitRecords(answer.data).keyed);
      const keys = new Set(records.map(({ key }) => key));
      const gone = before.filter((key) => !keys.has(key)); // `run` asks for proof first
      before = [...keys];
      return { records, gone };
    }),
    diff({ isNew: ({ key }) => key === '251' }),
    mergeMap(({ changes }) => changes.filter(({ op }) => op !== 'r')), // r: it was there before
    consoleSink({ images: false }),
    take(3),
    finalize(() => server.close()),
  )
  .subscribe();
