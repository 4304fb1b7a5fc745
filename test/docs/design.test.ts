import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { pathOf, text } from './texts.ts';

/** The paths at the beginning of the map's lines. */
function mapped(): string[] {
  return [...text('DESIGN.md').matchAll(/^ {4}(src\/\S+) {2}/gm)].map(([, path]) => path!);
}

it('the map of DESIGN.md names every file of src, once, and none that is gone', () => {
  const files = readdirSync(pathOf('src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(pathOf('.'), join(entry.parentPath, entry.name)));
  expect(mapped().sort()).toEqual(files.sort());
});
