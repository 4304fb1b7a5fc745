import { expect, it } from 'vitest';
import { NAMED_FAULTS } from '../../src/sandbox/named-faults.ts';
import { text } from './texts.ts';

it('docs/sandbox.md has a row for each named fault', () => {
  const section = /\n\*\*By name\.\*\*[\s\S]*?\n\n(\|[\s\S]*?)\n\n/.exec(
    text('docs/sandbox.md'),
  )![1]!;
  const rows = section.split('\n').slice(2);
  const expected = Object.entries(NAMED_FAULTS).map(([name, { meaning, value }]) => {
    const shown = value ? `${name}=${value.name.toUpperCase()}` : name;
    const note = value ? ` (default ${value.default})` : '';
    return `| \`${shown}\` | ${meaning}${note} |`;
  });
  expect(rows.sort()).toEqual(expected.sort());
});
