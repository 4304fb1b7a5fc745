// @ts-check
// Changes of orders as they happen, from the API to the console; after ten of them it ends.
//
//     npm run example:01         # npm run example:01 -- --follow: until Ctrl-C
import { finalize, identity, map, mergeMap, take } from 'rxjs';
import { startSandbox } from 'cellarstream/sandbox';
import { consoleSink, diff, instantOf, keyOfFields, keyRecords } from 'cellarstream/streams';
import { listRequest, login, pages, poll, tokenBucket, tokenSource } from 'cellarstream/streams';

const sandbox = await startSandbox({ changesPerSecond: 20 }); // the API, with 1,000 orders
const began = Date.now();

const url = new URL('/v1/auth/public/login', sandbox.url);
const limit = tokenBucket({ capacity: 10, windowMs: 60_000 });
const tokens = tokenSource({ login: login({ url, apiKey: () => sandbox.apiKey, limit }) });

const quota = tokenBucket({ capacity: 100, windowMs: 60_000 });
const list = listRequest({ url: new URL('/v1/orders', sandbox.url), tokens });
const keyOf = keyOfFields(['order_number']);

// First everything, then every second what was modified since: windows of dates, read page by page.
const changes$ = poll({
  scan: (dates) => pages({ request: (page) => list({ ...dates, ...page }, quota), keyOf }),
  since: 0,
  intervalMs: 1_000,
}).pipe(
  map(({ page }) => ({ records: keyRecords(page.answer.data, keyOf).keyed })),
  diff({ isNew: (order) => (instantOf(order, 'created_at') ?? 0) >= began }),
  mergeMap(({ changes }) => changes.filter(({ op }) => op !== 'r')), // r: it was there before
);

const some = process.argv.includes('--follow') ? identity : take(10);
changes$
  .pipe(
    consoleSink({ images: false }),
    some,
    finalize(() => void sandbox.close()),
  )
  .subscribe();
