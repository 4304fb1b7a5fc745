// `npm run --silent sbom > sbom.json`: what the package is made of at run time, with versions, licences and hashes, as
// CycloneDX (JSON), from the lock file. By npm, but for two things: its `--omit dev` leaves out what the package and a
// tool of development both depend on, and it names the package by its folder.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { stderr, stdout } from 'node:process';

/**
 * @typedef {{ 'bom-ref': string, properties?: { name: string }[] }} Component
 * @typedef {{ metadata: { component: object }, components: Component[],
 *   dependencies: { ref: string, dependsOn: string[] }[] }} Bom
 */

const DEVELOPMENT = 'cdx:npm:package:development';

const root = resolve(import.meta.dirname, '..');
const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
const npm = spawnSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });
if (npm.status === 0) {
  const { name } = /** @type {{ name: string }} */ (
    parse(readFileSync(resolve(root, 'package.json'), 'utf8'))
  );
  const bom = withoutDevelopment(/** @type {Bom} */ (parse(npm.stdout)));
  Object.assign(bom.metadata.component, { name, type: 'application' });
  stdout.write(`${JSON.stringify(bom, null, 2)}\n`);
} else {
  stderr.write(npm.stderr);
  process.exitCode = 1;
}

/** @param {Bom} bom */
function withoutDevelopment(bom) {
  const isOurs = (/** @type {Component} */ { properties = [] }) =>
    !properties.some(({ name }) => name === DEVELOPMENT);
  const left = new Set(
    bom.components.filter((each) => !isOurs(each)).map((each) => each['bom-ref']),
  );
  return {
    ...bom,
    components: bom.components.filter(isOurs),
    dependencies: bom.dependencies
      .filter(({ ref }) => !left.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((on) => !left.has(on)) })),
  };
}

/**
 * @param {string} json
 * @returns {unknown}
 */
function parse(json) {
  return JSON.parse(json);
}
