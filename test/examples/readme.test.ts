import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const text = (path: string) => readFileSync(new URL(path, root), 'utf8');
const examples = readdirSync(new URL('examples', root)).filter((name) => /^\d/.test(name));

it('has a row for each example, with its one command', () => {
  const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> };
  const rows = text('examples/README.md')
    .split('\n')
    .filter((line) => line.startsWith('| ['));
  expect(rows).toHaveLength(examples.length);
  for (const [place, name] of examples.entries()) {
    const [, file, command] = /^\| \[.*?\]\((.*?)\) +\| .* \| `(.*?)` +\|$/.exec(rows[place]!)!;
    expect(file!.split('/')[0]).toBe(name);
    expect(text(`examples/${file}`)).toContain(command);
    if (!file!.endsWith('.mjs')) continue;
    const script = `example:${name.slice(0, 2)}`;
    expect(command).toBe(`npm run ${script}`);
    expect(scripts[script]).toBe(`npm run build && node examples/${name}`);
  }
});
