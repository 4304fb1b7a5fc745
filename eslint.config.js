import { defineConfig, globalIgnores } from 'eslint/config';
import jsdoc from 'eslint-plugin-jsdoc';
import tseslint from 'typescript-eslint';

export default defineConfig([
  globalIgnores([
    'dist',
    'coverage',
    'node_modules',
    '.dependency-cruiser.mjs',
    'src/schemas/avro/transcoder/wasm', // AssemblyScript, whose compiler checks it
  ]),
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
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/prefer-nullish-coalescing': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
    },
  },
  {
    // Doc comments say what a thing is or does, in other words than its name.
    files: ['src/**/*.ts'],
    // Its texts are those of the registered schema, which must not change.
    ignores: ['src/description/wine/order-type.ts'],
    plugins: { jsdoc },
    rules: {
      'jsdoc/informative-docs': 'error',
      'jsdoc/match-description': [
        'error',
        {
          contexts: ['any'],
          mainDescription: {
            match:
              '^(?!(Of|By|As|Behind|Beside|So|In which|Who|What|That which|Nobody|Somebody|Whoever)\\b)',
            message: 'begin with a noun phrase or a verb that says what this is or does',
          },
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
          paths: ['node:timers', 'node:timers/promises', 'timers'],
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
