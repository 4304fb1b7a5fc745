import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { descriptionInWords } from '../../src/description/in-words.ts';
import { readDescription } from '../../src/description/read-description.ts';

const FOLDER = join(import.meta.dirname, '../../examples/apis');
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));

describe('examples of descriptions', () => {
  it('are there for seven APIs', () => {
    const apis = ['directus', 'github', 'json-server', 'keycloak', 'redmine', 'shopify', 'stripe'];
    expect(FILES).toEqual(apis.map((api) => `${api}.yaml`));
  });

  it.each(FILES)('%s is valid, short and explained', (file) => {
    const path = join(FOLDER, file);
    const { lists } = readDescription(path);
    for (const { one, keyCandidates } of lists) {
      expect(keyCandidates).toHaveLength(1);
      expect(one).toBeDefined(); // a deletion can be proven
    }
    expect(descriptionInWords(readDescription(path)).length).toBeGreaterThan(5);
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(40);
    expect(lines.filter((line) => line.includes('# ')).length).toBeGreaterThan(2);
  });
});
