import { expect, it } from 'vitest';
import { runToEnd } from './run-to-end.ts';

it('prints what is sold, comes and goes, with unchanged pages not sent again', async () => {
  const { code, stdout, stderr } = await runToEnd('07-own-api.mjs');
  const changes = stdout.trimEnd().split('\n');
  expect(changes.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ key: '7', op: 'u', changed: ['stock'] }),
    expect.objectContaining({ key: '26', op: 'c' }),
    expect.objectContaining({ key: '3', op: 'd', after: null }),
  ]);
  // Three pages, then those that differ: the first; the last; all, as each has moved up by one.
  expect(stderr).toBe('4 readings: 8 x 200, 4 x 304, 1 x 503\n');
  expect(code).toBe(0);
});
