import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { TEXTS } from './code-blocks.ts';
import { pathOf, text } from './texts.ts';

const GENERATED = readdirSync(pathOf('docs/api')).map((file) => `docs/api/${file}`);

it('there are texts', () => {
  expect(TEXTS).toEqual(
    expect.arrayContaining(['README.md', 'DESIGN.md', 'CHANGELOG.md', 'CONTRIBUTING.md']),
  );
});

it.each([...TEXTS, ...GENERATED])(
  'the links of %s lead to files and headings that are there',
  (file) => {
    const prose = text(file).replace(/^```.*?^```$/gms, '');
    const links = [...prose.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)];
    const broken = links.filter(([, path, heading]) => {
      const target = path ? join(dirname(file), path) : file;
      if (!existsSync(pathOf(target))) return true;
      return heading !== undefined && !anchors(target).has(heading);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  },
);

const found = new Map<string, ReadonlySet<string>>();

/** The anchors of a text: those that headings have on GitHub, and those that are spelled out. */
function anchors(file: string): ReadonlySet<string> {
  const known = found.get(file);
  if (known) return known;
  const markdown = text(file);
  const headings = [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
  const spelled = [...markdown.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id!);
  const all = new Set([...headings, ...spelled]);
  found.set(file, all);
  return all;
}
