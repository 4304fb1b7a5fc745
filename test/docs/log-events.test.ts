import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { pathOf, text } from './texts.ts';

/** The files in which lines are logged. */
const FOLDER = 'src/commands';

it('the table of log lines names every event that is logged, and no other', () => {
  const logged = new Set<string>();
  for (const file of readdirSync(pathOf(FOLDER))) {
    for (const [, event] of text(`${FOLDER}/${file}`).matchAll(/\bevent: '([a-z-]+)'/g)) {
      logged.add(event!);
    }
  }
  const section = /\n## Logs\n([\s\S]*?)\n## /.exec(text('docs/operating.md'))![1]!;
  const told = [...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, event]) => event);
  expect(told.sort()).toEqual([...logged].sort());
});
