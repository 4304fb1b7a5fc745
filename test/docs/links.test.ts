import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { pathOf, text } from './texts.ts';

const TEXTS = ['', 'docs/'].flatMap((folder) =>
  readdirSync(pathOf(folder || '.'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => folder + file),
);

it('there are texts', () => {
  expect(TEXTS).toEqual(
    expect.arrayContaining(['README.md', 'DESIGN.md', 'CHANGELOG.md', 'CONTRIBUTING.md']),
  );
});

it.each(TEXTS)('the links of %s lead to files and headings that are there', (file) => {
  const links = [...text(file).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)];
  const broken = links.filter(([, path, heading]) => {
    const target = path ? join(dirname(file), path) : file;
    if (!existsSync(pathOf(target))) return true;
    return heading !== undefined && !headings(text(target)).includes(heading);
  });
  expect(broken.map(([link]) => link)).toEqual([]);
});

/** The anchors that headings have on GitHub. */
function headings(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}
