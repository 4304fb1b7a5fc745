import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const breaks = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((name) => /[/\\].*\.ts$/.test(name))
  .map((name) => join(import.meta.dirname, name));

it.each(breaks)('%s replaces an export of its module', (file) => {
  const text = readFileSync(file, 'utf8');
  const [, path] = /^export \* from '(.+)';$/m.exec(text) ?? [];
  const whole = readFileSync(resolve(dirname(file), path!), 'utf8');
  const replaced = namesIn(text);
  expect(replaced.length).toBeGreaterThan(0);
  expect(namesIn(whole)).toEqual(expect.arrayContaining(replaced));
});

/** Names of the values that a module declares and exports. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/^export (?:const|class|(?:async )?function\*?) (\w+)/gm)].map(
    ([, name]) => name!,
  );
}
