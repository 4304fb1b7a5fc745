import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import type { Plugin } from 'vitest/config';
import base from './vitest.config.ts';

/** The tests with one part of the product broken: `BREAK` names a file of test/breaks; without it nothing is broken. */
const name = process.env.BREAK;

/**
 * A break is a module that re-exports one of src with one of its exports replaced. It takes the place of that module for
 * whoever imports it, but for itself.
 */
function broken(file: string): Plugin {
  const [, path] = /^export \* from '(.+)';$/m.exec(readFileSync(file, 'utf8')) ?? [];
  const whole = resolve(dirname(file), path ?? '');
  if (!path || !existsSync(whole)) throw new Error(`${file} re-exports no module`);
  return {
    name: 'break',
    enforce: 'pre',
    resolveId: async function (id, importer, options) {
      if (importer === file) return null;
      const found = await this.resolve(id, importer, { ...options, skipSelf: true });
      return found?.id === whole ? file : null;
    },
  };
}

const plugins = name ? [broken(resolve(import.meta.dirname, 'test/breaks', `${name}.ts`))] : [];

export default defineConfig({
  plugins,
  test: {
    ...base.test,
    projects: (base.test?.projects ?? []).map((project) =>
      typeof project === 'object' && 'test' in project ? { ...project, extends: true } : project,
    ),
  },
});
