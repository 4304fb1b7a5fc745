import { defineConfig, globalIgnores } from 'eslint/config';
import importX from 'eslint-plugin-import-x';
import tseslint from 'typescript-eslint';

/**
 * Files of `target` may not import from `from`: the arrows of DESIGN.md point one way.
 *
 * @param {string | string[]} target
 * @param {string | string[]} from
 * @param {string} message
 */
const wall = (target, from, message) => ({ target, from, message });

export default defineConfig([
  globalIgnores(['dist', 'coverage', 'node_modules']),
  tseslint.configs.recommendedTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: {
          allowDefaultProject: ['eslint.config.js', 'test/integration/support/*.mjs'],
        },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    plugins: { 'import-x': importX },
    settings: {
      'import-x/resolver': { node: { extensions: ['.ts', '.js', '.mjs'] } },
      // Else it looks into no file that is imported, and finds no cycle.
      'import-x/extensions': ['.ts', '.js', '.mjs'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] },
    },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/prefer-nullish-coalescing': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'import-x/no-cycle': ['error', { ignoreExternal: true }], // no package imports us
      'import-x/no-restricted-paths': [
        'error',
        {
          zones: [
            wall(
              './src/streams',
              ['./src/sinks', './src/state', './src/devstack', './src/sandbox'],
              'streams know nothing of Kafka, of the store or of the sandbox',
            ),
            wall('./src/schemas', ['./src/sinks', './src/state'], 'schemas stand alone'),
            wall('./src/state', ['./src/streams', './src/sinks'], 'the store stands alone'),
            wall('./src/sandbox', ['./src/streams', './src/sinks', './src/state'], 'it is the API'),
          ],
        },
      ],
    },
  },
  {
    files: ['src/streams/**'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'take the time from the scheduler' },
        { object: 'performance', property: 'now', message: 'take the time from the scheduler' },
      ],
      'no-restricted-globals': ['error', 'setTimeout', 'setInterval', 'setImmediate'],
      'no-restricted-imports': [
        'error',
        {
          paths: ['kafkajs', 'lmdb', 'node:timers', 'node:timers/promises', 'timers'],
        },
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector: "NewExpression[callee.name='Date'][arguments.length=0]",
          message: 'take the time from the scheduler',
        },
      ],
    },
  },
  {
    // Matchers such as expect.objectContaining are typed any.
    files: ['test/**'],
    rules: { '@typescript-eslint/no-unsafe-assignment': 'off' },
  },
  {
    // They are JavaScript, to be read: what comes from JSON or Avro is any.
    files: ['examples/**', 'bench/**'],
    rules: {
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
]);
