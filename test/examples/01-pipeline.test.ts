import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const EXAMPLE = new URL('../../examples/01-pipeline.mjs', import.meta.url);

/** As a reader runs it: from `dist`, which `npm test` builds before. */
it('prints ten changes of orders, made while it runs, and ends', { timeout: 60_000 }, async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [EXAMPLE.pathname]);
  const lines = stdout.trimEnd().split('\n');
  const changes = lines.map((line) => JSON.parse(line) as Record<'key' | 'op', string>);

  expect(stderr).toBe('');
  expect(changes).toHaveLength(10);
  for (const { key, op } of changes) {
    expect(key).toMatch(/^10\d{4}$/);
    // The sandbox begins with the orders 100001 to 101000.
    expect(op).toBe(changes.some((other) => other.key === key && other.op === 'c') ? op : 'u');
  }
  expect(changes.map(({ op }) => op)).toContain('u');
  expect(new Set(changes.map(({ key, op }) => `${op} ${key}`)).size).toBeGreaterThan(5);
});

it('is under 30 lines of code', () => {
  const lines = readFileSync(EXAMPLE, 'utf8').split('\n');
  expect(lines.filter((line) => !/^\s*(\/\/.*)?$/.test(line)).length).toBeLessThan(30);
});
