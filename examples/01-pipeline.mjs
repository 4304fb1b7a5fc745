// @ts-check
// Changes of orders as they happen, from the API to the console; after ten of them it ends.
//
//     npm run example:01         # npm run example:01 -- --follow: until Ctrl-C
import { finalize, identity, map, mergeMap, take } from 'rxjs';
import { listNamed, wine } from 'cellarstream/describe';
import { startSandbox } from 'cellarstream/sandbox';
import { consoleSink, diff, keyOfFields, listRequest, login } from 'cellarstream/streams';
import { pages, poll, splitRecords, tokenBucket, tokenSource } from 'cellarstream/streams';

const sandbox = await startSandbox({ changesPerSecond: 20 }); // the API, with 1,000 orders
const began = Date.now();

const baseUrl = new URL(sandbox.url);
const limit = tokenBucket({ capacity: 10, windowMs: 60_000 });
const apiKey = () => sandbox.apiKey;
const tokens = tokenSource({ login: login({ baseUrl, description: wine, apiKey, limit }) });

const quota = tokenBucket({ capacity: 100, windowMs: 60_000 });
const keyOf = keyOfFields(['order_number']);
const request = listRequest({ baseUrl, list: listNamed(wine, 'orders'), tokens, keyOf });

const some = process.argv.includes('--follow') ? identity : take(10);

// First everything, then every second what was modified since: windows of dates, read page by page.
poll({
  scan: (dates) => pages({ request: (page) => request({ ...dates, ...page }, quota), keyOf }),
  since: 0,
  intervalMs: 1_000,
})
  .pipe(
    map(({ page }) => ({ records: splitRecords(page.answer.data).keyed })),
    diff({ isNew: ({ createdAt }) => (createdAt ?? 0) >= began }),
    mergeMap(({ changes }) => changes.filter(({ op }) => op !== 'r')), // r: it was there before
    consoleSink({ images: false }),
    some,
    finalize(() => void sandbox.close()),
  )
  .subscribe();
