// The status pages, each as one file with its script and its style in it: dist/ops/page.html (of the only account), account.html
// (of one account of a fleet) and fleet.html.
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
    throw new Error(`a page needs <!-- ${mark} -->, once`);
  }
  return before + content + after;
}

/** @param {{ skeleton: string, css: string, script: string }} names */
async function page({ skeleton, css, script }) {
  const [style, code] = await Promise.all([bundle(css), bundle(script)]);
  const parts = {
    verdict: readFileSync(`${SOURCE}/verdict.html`, 'utf8').trim(),
    style: `<style>${style}</style>`,
    script: `<script type="module">${code}</script>`,
  };
  return Object.entries(parts).reduce(
    (html, [mark, content]) => put(html, mark, content),
    readFileSync(`${SOURCE}/${skeleton}`, 'utf8'),
  );
}

const [one, fleet] = await Promise.all([
  page({ skeleton: 'index.html', css: 'page.css', script: 'main.ts' }),
  page({ skeleton: 'fleet.html', css: 'fleet-page.css', script: 'fleet-main.ts' }),
]);
// One level down, with the way back to all of them.
const account = put(one, 'back', '<p><a href="../">All accounts</a></p>')
  .replace('<body>', '<body data-page="account">')
  .replaceAll(/href="(readyz|metrics|status)"/g, 'href="../$1"');
mkdirSync(TARGET, { recursive: true });
writeFileSync(`${TARGET}/page.html`, put(one, 'back', ''));
writeFileSync(`${TARGET}/fleet.html`, fleet);
writeFileSync(`${TARGET}/account.html`, account);
