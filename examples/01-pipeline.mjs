// @ts-check
// Changes of orders as they happen, from the API to the console; after ten of them it ends.
//
//     npm run build && node examples/01-pipeline.mjs            # --follow: until Ctrl-C
import { filter, finalize, identity, map, mergeMap, take } from 'rxjs';
import { consoleSink, diff, instantOf, keyOfFields, keyRecords, ORDER_IDENTITIES } from 'cellarstream';
import { listRequest, login, pages, poll, tokenBucket, tokenSource } from 'cellarstream';
import { startSandbox } from 'cellarstream/sandbox';

const sandbox = await startSandbox({ changesPerSecond: 5 }); // the API, with 1,000 orders that change
const began = Date.now();

const tokens = tokenSource({
  login: login({
    url: new URL('/v1/auth/public/login', sandbox.url),
    apiKey: () => sandbox.apiKey,
    limit: tokenBucket({ capacity: 10, windowMs: 60_000 }),
  }),
});
const list = listRequest({ url: new URL('/v1/orders', sandbox.url), tokens });
const quota = tokenBucket({ capacity: 100, windowMs: 60_000 });
const keyOf = keyOfFields(['order_number']);
const scan = (window) => pages({ request: (page) => list({ ...window, ...page }, quota), keyOf });

const changes$ = poll({ scan, since: 0, intervalMs: 1_000 }).pipe(
  map(({ page }) => ({ records: keyRecords(page.answer.data, keyOf).keyed })),
  diff({ isNew: (order) => instantOf(order, 'created_at') >= began, identities: ORDER_IDENTITIES }),
  mergeMap(({ changes }) => changes),
  filter(({ op }) => op !== 'r'), // what was there at the start
);
const some = process.argv.includes('--follow') ? identity : take(10);
changes$.pipe(consoleSink({ images: false }), some, finalize(() => sandbox.close())).subscribe();
