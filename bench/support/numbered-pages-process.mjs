// @ts-check
// The orders of a sandbox as json-server serves a list: numbered pages of any size, an array as the whole
// body, the number of records in a header, no login. Started by `numbered-pages.mjs`; ends with its parent.
import { createServer } from 'node:http';
import { fetchPages } from './pages.mjs';

const { sandbox, orders } =
  /** @type {{ sandbox: { url: string, apiKey: string }, orders: number }} */ (
    JSON.parse(process.argv[2] ?? '{}')
  );
const pages = await fetchPages(sandbox, 'orders', Math.ceil(orders / 1_000));
/** Records as texts, so that a page of any size costs little. */
const texts = pages.flatMap((page) =>
  /** @type {{ data: unknown[] }} */ (JSON.parse(page)).data.map((order) => JSON.stringify(order)),
);

const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const size = Number(searchParams.get('_limit'));
  const begin = (Number(searchParams.get('_page')) - 1) * size;
  response.setHeader('content-type', 'application/json');
  response.setHeader('x-total-count', texts.length);
  response.end(`[${texts.slice(begin, begin + size).join(',')}]`);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  process.send?.({ id: 0, result: `http://127.0.0.1:${port}` });
});
process.on('disconnect', () => process.exit());
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => undefined); // its parent ends it
