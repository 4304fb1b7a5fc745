import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { runToEnd } from './run-to-end.ts';

it('prints what changes, comes and goes in a json-server, from a list of several pages', async () => {
  const { code, stdout, stderr } = await runToEnd('09-other-api.mjs');
  const changes = stdout.trimEnd().split('\n');
  expect(stderr).toBe('');
  expect(changes.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ key: '7', op: 'u', changed: ['name'] }),
    expect.objectContaining({ key: '251', op: 'c' }),
    expect.objectContaining({ key: '3', op: 'd' }),
  ]);
  expect(code).toBe(0);
});

it('is under 50 lines of code', () => {
  const lines = readFileSync(new URL('../../examples/09-other-api.mjs', import.meta.url), 'utf8');
  const code = lines.split('\n').filter((line) => !/^\s*(\/[/*].*)?$/.test(line));
  expect(code.length).toBeLessThan(50);
});
