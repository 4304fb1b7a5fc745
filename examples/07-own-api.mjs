// @ts-check
// The operators with another API, which has numbered pages, Link headers and ETags: what changes in its list.
//
//     npm run example:07         # needs no demo, and ends by itself
//
// Other pages are another `expand`; the quota, trying again, keys and differences stay. (Deletions are easy
// here: this list stands still while it is read. One that does not is what `pages` is for.)
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import {
  EMPTY,
  defer,
  exhaustMap,
  expand,
  finalize,
  map,
  mergeMap,
  reduce,
  take,
  timer,
} from 'rxjs';
import { CellarstreamError } from 'cellarstream';
import { backoff, consoleSink, diff, during } from 'cellarstream/streams';
import { keyOfFields, keyRecords, tokenBucket } from 'cellarstream/streams';

/** @import { JsonValue } from 'cellarstream/schemas' */
/** @typedef {{ etag: string, wines: readonly JsonValue[], next: string | undefined }} Page */

const api = await startApi();
const quota = tokenBucket({ capacity: 20, windowMs: 1_000 });
const keyOf = keyOfFields(['id']);

/** @type {Map<string, Page>} as they were last answered: a 304 says that they still are */
const pages = new Map();

/** @param {string} url */
async function get(url) {
  const held = pages.get(url);
  const answer = await fetch(url, { headers: held ? { 'if-none-match': held.etag } : {} });
  const { status, headers } = answer;
  if (status === 304 && held) return held;
  if (!answer.ok) {
    throw new CellarstreamError('API_STATUS', `${url} answered ${status}`, { context: { status } });
  }
  const next = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
  const page = {
    etag: headers.get('etag') ?? '',
    wines: /** @type {JsonValue[]} */ (await answer.json()),
    next,
  };
  pages.set(url, page);
  return page;
}

/** What is tried again waits for the quota again: a 503, an API that is not up yet. @param {string} url */
const request = (url) =>
  during(
    quota,
    defer(() => get(url)),
  ).pipe(backoff());

/** The whole list. */
const reading = () =>
  request(api.url).pipe(
    expand(({ next }) => (next ? request(next) : EMPTY)),
    reduce((all, { wines }) => [...all, ...wines], /** @type {JsonValue[]} */ ([])),
  );

let readings = 0;
/** @type {ReadonlySet<string>} */
let known = new Set();

timer(0, 100)
  .pipe(
    exhaustMap(reading),
    map((wines) => {
      const records = keyRecords(wines, keyOf).keyed;
      const before = known;
      known = new Set(records.map(({ key }) => key));
      readings += 1;
      return { records, gone: [...before].filter((key) => !known.has(key)) };
    }),
    diff({ isNew: () => readings > 1 }),
    mergeMap(({ changes }) => changes.filter(({ op }) => op !== 'r')), // r: it was there before
    consoleSink(),
    take(3),
    finalize(api.close),
  )
  .subscribe({ complete: () => console.error(`${readings} readings: ${api.told()}`) });

/**
 * The other API: 25 wines, ten a page. One is sold, one comes, one goes, and once there is a 503. It is not up
 * yet when it is first asked.
 */
async function startApi() {
  const wines = new Map(Array.from({ length: 25 }, (_, n) => [n + 1, { id: n + 1, stock: 12 }]));
  /** @type {number[]} */
  const statuses = [];
  const story = [
    () => undefined,
    () => wines.set(7, { id: 7, stock: 11 }),
    () => wines.set(26, { id: 26, stock: 60 }),
    () => wines.delete(3),
  ];
  const server = createServer((request, response) => {
    const page = Number(new URL(request.url ?? '', url).searchParams.get('page') ?? 1);
    if (page === 1) story.shift()?.();
    const body = JSON.stringify([...wines.values()].slice((page - 1) * 10, page * 10));
    const link = page * 10 < wines.size ? `<${url}?page=${page + 1}>; rel="next"` : '';
    const etag = `"${createHash('sha256').update(link).update(body).digest('hex')}"`;
    const status =
      statuses.length === 1 ? 503 : request.headers['if-none-match'] === etag ? 304 : 200;
    statuses.push(status);
    response.writeHead(status, { etag, ...(link && { link }) });
    response.end(status === 200 ? body : undefined);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const url = `http://127.0.0.1:${port}/wines`;
  await once(server.close(), 'close');
  setTimeout(() => server.listen(port, '127.0.0.1'), 300);
  const count = (/** @type {number} */ wanted) =>
    statuses.filter((status) => status === wanted).length;
  return {
    url,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
    told: () => [200, 304, 503].map((status) => `${count(status)} x ${status}`).join(', '),
  };
}
