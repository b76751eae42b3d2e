import js from '@eslint/js';
import globals from 'globals';

export default [
  { ignores: ['build/', 'dist/', 'types/', 'tests/cases/', 'bench/results/', '**/node_modules/'] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: 'module' },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-new-func': 'error',
      'no-shadow': 'error',
      'no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'no-var': 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
    },
  },
  {
    files: ['scripts/**', 'tests/**', 'bench/**', 'web/cli/**', 'web/examples/*', '*.js'],
    languageOptions: { globals: globals.node },
  },
  { files: ['web/**', 'tests/browser/**', 'tests/hosts/**'], languageOptions: { globals: globals.browser } },
];
