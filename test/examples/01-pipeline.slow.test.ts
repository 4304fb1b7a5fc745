import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import type { Change } from '../../src/exports/streams.ts';

const EXAMPLE = new URL('../../examples/01-pipeline.mjs', import.meta.url);

/** As a reader runs it: from `dist`, which `npm test` builds before. */
it('prints ten changes of orders, made while it runs, and ends', { timeout: 60_000 }, async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [EXAMPLE.pathname]);
  const lines = stdout.trimEnd().split('\n');
  const changes = lines.map((line) => JSON.parse(line) as Pick<Change, 'key' | 'op' | 'changed'>);

  expect(stderr).toBe('');
  expect(changes).toHaveLength(10);
  for (const { key, op, changed } of changes) {
    // The sandbox begins with the orders 100001 to 101000: those are no news, later ones are.
    if (Number(key) <= 101_000) expect(op).toBe('u');
    if (op === 'u') expect(changed).toContain('updated_at');
  }
  expect(changes.map(({ op }) => op)).toContain('u');
});

it('is under 30 lines of code', () => {
  const lines = readFileSync(EXAMPLE, 'utf8').split('\n');
  expect(lines.filter((line) => !/^\s*(\/\/.*)?$/.test(line)).length).toBeLessThan(30);
});
