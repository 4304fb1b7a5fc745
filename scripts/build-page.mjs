// The status page as one file: dist/ops/page.html, with its script and its style in it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const SOURCE = 'src/ops/page';
const TARGET = 'dist/ops';

/** @param {string} entry */
async function bundle(entry) {
  const { outputFiles, warnings } = await build({
    entryPoints: [`${SOURCE}/${entry}`],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: ['chrome111', 'firefox115', 'safari16.4'],
    legalComments: 'none',
    // package.json says that importing has no side effects: true of the library, not of a page.
    ignoreAnnotations: true,
    logLevel: 'warning',
  });
  if (warnings.length > 0) throw new Error(`${SOURCE}/${entry}: see the warnings above`);
  return outputFiles[0]?.text.trim() ?? '';
}

/** @param {string} html @param {string} mark @param {string} content */
function put(html, mark, content) {
  const [before, after, more] = html.split(`<!-- ${mark} -->`);
  if (before === undefined || after === undefined || more !== undefined) {
    throw new Error(`${SOURCE}/index.html needs <!-- ${mark} -->, once`);
  }
  return before + content + after;
}

const [style, script] = await Promise.all([bundle('page.css'), bundle('main.ts')]);
const skeleton = readFileSync(`${SOURCE}/index.html`, 'utf8');
const styled = put(skeleton, 'style', `<style>${style}</style>`);
mkdirSync(TARGET, { recursive: true });
writeFileSync(
  `${TARGET}/page.html`,
  put(styled, 'script', `<script type="module">${script}</script>`),
);
