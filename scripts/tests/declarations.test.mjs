import assert from 'node:assert/strict';
import { test } from 'node:test';
import { finishDeclarations } from '../build/declarations.mjs';

test('the text of a typedef stands before its type, in one line or several', () => {
  const source = [
    '/** Numbers of {heads}. @typedef {readonly number[] | ({ data: number[] } & Shaped)} Numbers */',
    '/**',
    ' * Sizes, those of',
    ' *',
    ' * - `a`: one',
    ' * @template {object} T',
    ' * @typedef {object} Sizes',
    ' * @property {number} a',
    ' */',
    '/** @typedef {string} Plain */',
    '/**',
    ' * @typedef {object} First of two,',
    ' *   described here',
    ' * @property {number} a',
    ' * @typedef {string} Second',
    ' */',
  ].join('\n');
  const declarations = [
    'export type Numbers = readonly number[];',
    'export type SizesOf = 1;',
    'export type Sizes<T> = {',
    '    a: number;',
    '};',
    'export type Plain = string;',
    'export type First = {};',
    'export type Second = string;',
    '',
  ].join('\n');
  assert.equal(
    finishDeclarations(declarations, source),
    [
      '/**\n * Numbers of {heads}.\n */',
      'export type Numbers = readonly number[];',
      'export type SizesOf = 1;',
      '/**\n * Sizes, those of\n *\n * - `a`: one\n */',
      'export type Sizes<T> = {',
      '    a: number;',
      '};',
      'export type Plain = string;',
      '/**\n * of two,\n *   described here\n */',
      'export type First = {};',
      'export type Second = string;',
      '',
    ].join('\n'),
  );
});

test('what is left of a typedef’s comment goes, other comments stay', () => {
  const declarations = [
    '/**\n * @typedef {import("./a.js").A} A\n */',
    '/** Says hello. */',
    'export declare function hello(): void;',
    '',
  ].join('\n');
  assert.equal(finishDeclarations(declarations, ''), '/** Says hello. */\nexport declare function hello(): void;\n');
});

test('a type that is taken from another file is that type, one with parameters stays its own', () => {
  const declarations = [
    "export type A = import('./a.js').A;",
    "export type B = import('./a.js').C;",
    "export type D<O extends A = {}> = import('./d.js').D<O>;",
    '',
  ].join('\n');
  assert.equal(
    finishDeclarations(declarations, ''),
    [
      "import type { A } from './a.js';",
      'export type { A };',
      "export type B = import('./a.js').C;",
      "export type D<O extends A = {}> = import('./d.js').D<O>;",
      '',
    ].join('\n'),
  );
});
