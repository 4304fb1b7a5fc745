import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const path = (file: string) => fileURLToPath(new URL(`../../${file}`, import.meta.url));

interface Bom {
  readonly bomFormat: string;
  readonly metadata: { readonly component: { readonly name: string } };
  readonly components: readonly { readonly name: string; readonly version: string }[];
}

it('the SBOM lists what runs, by its own name, and nothing of development', () => {
  const { stdout, status } = spawnSync(process.execPath, [path('scripts/sbom.mjs')], {
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  const { bomFormat, metadata, components } = JSON.parse(stdout) as Bom;
  expect([bomFormat, metadata.component.name]).toEqual(['CycloneDX', 'cellarstream']);
  const manifest = JSON.parse(readFileSync(path('package.json'), 'utf8')) as Record<
    'dependencies' | 'devDependencies',
    object
  >;
  const names = components.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(Object.keys(manifest.dependencies)));
  expect(names).not.toContain('vitest');
  expect(components.every(({ version }) => version !== '')).toBe(true);
  expect(stdout).not.toContain(path('')); // nor where it was made
});
