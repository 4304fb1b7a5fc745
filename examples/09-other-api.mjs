// @ts-check
// Another API from end to end, described by the YAML file beside this one: a json-server with 100 wines in four pages. Its changes are printed.
//
//     npm run example:09         # needs no demo, and ends by itself
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
// @ts-expect-error: it has no types
import jsonServer from 'json-server';
import { exhaustMap, finalize, map, mergeMap, take, timer, toArray } from 'rxjs';
import { listNamed, readDescription } from 'cellarstream/describe';
import { consoleSink, diff, keyOfFields, listRequest } from 'cellarstream/streams';
import { pages, splitRecords, staticCredentials, tokenBucket } from 'cellarstream/streams';

const wines = Array.from({ length: 100 }, (_, n) => ({ id: n + 1, name: `wine ${n + 1}` }));
const router = jsonServer.router({ wines });
const api = jsonServer.create().use(router).listen(0, '127.0.0.1');
await once(api, 'listening');
const baseUrl = new URL(`http://127.0.0.1:${api.address().port}`);

const { lists, auth } = readDescription(fileURLToPath(import.meta.resolve('./09-other-api.yaml')));
const list = listNamed({ lists }, 'wines');
const keyOf = keyOfFields(['id']);
const quota = tokenBucket({ capacity: 600, windowMs: 60_000 });
const tokens = staticCredentials({ auth, variables: () => ({}) });
const request = listRequest({ baseUrl, list, tokens, keyOf });
const scan = () => pages({ request: (page) => request(page, quota), keyOf, list });

const table = router.db.get('wines');
const story = [
  () => table.find({ id: 7 }).assign({ name: 'Malbec' }).write(),
  () => table.push({ id: 101, name: 'Syrah' }).write(),
  () => table.remove({ id: 3 }).write(),
];
/** @type {ReadonlySet<string>} */
let known = new Set();

timer(0, 100)
  .pipe(
    exhaustMap(() => scan().pipe(toArray())),
    map((read) => {
      const records = read.flatMap(({ answer }) => splitRecords(answer.data).keyed);
      const gone = [...known].filter((key) => !records.some((record) => record.key === key));
      known = new Set(records.map(({ key }) => key));
      story.shift()?.();
      return { records, gone };
    }),
    diff({ isNew: ({ key }) => Number(key) > 100 }),
    mergeMap(({ changes }) => changes.filter(({ op }) => op !== 'r')), // r: it was there before
    consoleSink({ images: false }),
    take(3),
    finalize(() => api.close()),
  )
  .subscribe();
