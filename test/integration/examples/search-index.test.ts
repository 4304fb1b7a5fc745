import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { follow } from '../support/follow.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from '../support/service.ts';
import { runExample } from './run-example.ts';
import type { Example } from './run-example.ts';

const PREFIX = 'example-04';
const PRODUCTS = 40;

it('rebuilds, follows, grows with the schema, and resumes where it was', async () => {
  const sandbox = await sandboxForTest({ records: { products: PRODUCTS } });
  const service = cliForTest(['run'], {
    ...settings(sandbox, PREFIX, folderForTest()),
    RESOURCES: 'products',
    POLL_INTERVAL_MS: '100',
  });
  await firstReadDone(service);
  const events = follow(`${PREFIX}.products`);
  const folder = folderForTest();
  const start = () => runExample('04-search-index.mjs', PREFIX, { folder });

  // From the beginning.
  const first = start();
  expect(await begun(first)).toEqual({ products: PRODUCTS, read: PRODUCTS });
  const pinot = [...sandbox.truth.records('products')].filter((product) =>
    /pinot/i.test(JSON.stringify(product)),
  );
  expect(pinot.length).toBeGreaterThan(0);
  expect(await ask(first, 'PINOT')).toBe(pinot.length);
  expect(await ask(first, 'pinot zinnober')).toBe(0);

  // What changes, and a field that no schema had.
  const [key] = [...sandbox.truth.keys('products')];
  sandbox.change('products', key!, { title: 'Zinnober Blend' });
  await vi.waitUntil(async () => (await ask(first, 'blend zinnober')) === 1, { timeout: 30_000 });
  expect(first.lines).toContain(`${key}  Zinnober Blend`);
  sandbox.addField('products', 'tasting_notes', 'quince and slate', { existing: Infinity });
  await vi.waitUntil(async () => (await ask(first, 'quince')) === PRODUCTS, { timeout: 30_000 });
  first.stdin.end();
  expect(await first.ended).toBe(0);

  // Resumed: only what was published meanwhile is read.
  const before = events.length;
  sandbox.change('products', key!, { title: 'Merlin' });
  await vi.waitUntil(() => events.length > before, { timeout: 30_000 });
  const second = start();
  expect(await begun(second)).toEqual({ products: PRODUCTS, read: 1 });
  expect(await ask(second, 'merlin slate')).toBe(1);
  expect(await ask(second, 'zinnober')).toBe(0);
  await second.end('SIGKILL'); // the file is as it was saved last, whole

  const third = start();
  expect(await begun(third)).toEqual({ products: PRODUCTS, read: 0 });
  expect(await ask(third, 'quince')).toBe(PRODUCTS);
  expect(await third.end('SIGTERM')).toBe(0);

  // An index of another version is none.
  const [name] = (readdirSync(folder, { recursive: true }) as string[]).filter((file) =>
    file.endsWith('products.json'),
  );
  const file = join(folder, name!);
  const stored = JSON.parse(readFileSync(file, 'utf8')) as { version: number };
  writeFileSync(file, JSON.stringify({ ...stored, version: stored.version + 1 }));
  const fourth = start();
  expect(await begun(fourth)).toEqual({ products: PRODUCTS, read: events.length });
  expect(await ask(fourth, 'quince')).toBe(PRODUCTS);
});

/** What it says when it has caught up. */
async function begun(index: Example): Promise<{ products: number; read: number }> {
  const [, products, read] = await index.until((lines) =>
    lines
      .map((line) => /^(\d+) products, (\d+) events read$/.exec(line))
      .find((found) => found !== null),
  );
  return { products: Number(products), read: Number(read) };
}

/** How many products it finds. */
async function ask(index: Example, question: string): Promise<number> {
  const seen = index.lines.length;
  index.stdin.write(`${question}\n`);
  const [, count] = await index.until((lines) =>
    lines
      .slice(seen)
      .map((line) => /^(\d+) found$/.exec(line))
      .find((found) => found !== null),
  );
  return Number(count);
}
