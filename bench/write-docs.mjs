// @ts-check
// Results of `npm run bench` into docs/performance.md.
//
//     npm run bench:docs                  # or, of other files: npm run bench:docs -- FILE [FILE ...]
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { growthPlot, joined, withResults } from './support/documents.mjs';
import { DEFAULT_JSON } from './support/options.mjs';

const DOCUMENT = fileURLToPath(new URL('../docs/performance.md', import.meta.url));
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
const svg = growthPlot(results);
if (svg !== undefined) writeFileSync(PLOT, svg);
