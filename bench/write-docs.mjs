// @ts-check
// Results of `npm run bench` into docs/performance.md, and beside it as JSON.
//
//     npm run bench:docs                             # or, of other files: npm run bench:docs -- FILE [FILE ...]
//     npm run bench:docs -- docs/performance.json FILE   # rows of the file in place of what is there
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { growthPlot, joined, withResults } from './support/documents.mjs';
import { DEFAULT_JSON } from './support/options.mjs';

const DOCUMENT = fileURLToPath(new URL('../docs/performance.md', import.meta.url));
const JSON_BESIDE = fileURLToPath(new URL('../docs/performance.json', import.meta.url));
const PLOT = fileURLToPath(new URL('../docs/performance-growth.svg', import.meta.url));

const files = process.argv.length > 2 ? process.argv.slice(2) : [DEFAULT_JSON];
const results = joined(
  files.map(
    (file) =>
      /** @type {import('./support/documents.mjs').Results} */ (
        JSON.parse(readFileSync(file, 'utf8'))
      ),
  ),
);
writeFileSync(DOCUMENT, withResults(readFileSync(DOCUMENT, 'utf8'), results));
writeFileSync(JSON_BESIDE, `${JSON.stringify(results, undefined, 2)}\n`);
const svg = growthPlot(results);
if (svg !== undefined) writeFileSync(PLOT, svg);
