import { describe, expect, it } from 'vitest';
import { RESOURCES } from '../../src/sandbox/resources.ts';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { text } from './texts.ts';

/** The rows of the tables of docs/resources.md, cell by cell. */
const rows = text('docs/resources.md')
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').map((cell) => cell.trim()));

describe('docs/resources.md', () => {
  it.each(RESOURCES)('says how changes of %s are found, and what its key may be', (resource) => {
    const [, , found, key] = rows.find(([, name]) => name === `\`${resource}\``)!;
    const { dates, keyCandidates } = listNamed(WINE, resource);
    expect(found!.includes('polls')).toBe(dates !== undefined);
    const named = key!
      .split(', ')
      .map((part) => [...part.matchAll(/`([^`]+)`/g)].map(([, n]) => n));
    expect(named).toEqual(keyCandidates);
  });
});
