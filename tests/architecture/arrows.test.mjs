import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checkImport, checkInclude, findCycle, includesOf, resolveImport } from './arrows.mjs';
import { listFiles, readImports, readIncludes } from './read-project.mjs';

const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));

describe('the project', () => {
  test('includes only along the arrows', () => {
    const files = listFiles(ROOT, ['src', 'tests', 'bench'], /\.(cpp|hpp|cc|h)$/);
    for (const folder of ['simd', 'sdpa', 'kernels', 'arch', 'core', 'binding']) {
      assert.ok(
        files.some((file) => file.startsWith(`src/${folder}/`)),
        `src/${folder} has no files: has it moved?`,
      );
    }
    assert.deepEqual(readIncludes(ROOT, files).map(checkInclude).filter(Boolean), []);
  });

  test('imports only along the arrows', async () => {
    const files = listFiles(ROOT, ['web', 'tests', 'bench'], /\.m?js$/);
    for (const folder of ['web/', 'tests/js/']) assert.ok(files.some((file) => file.startsWith(folder)));
    const arrows = await readImports(ROOT, files);
    assert.ok(arrows.length > files.length / 2, 'hardly any import was found');
    assert.deepEqual(arrows.map(checkImport).filter(Boolean), []);
  });

  test('has no circle of imports in web/', async () => {
    const arrows = await readImports(ROOT, listFiles(ROOT, ['web'], /\.m?js$/));
    assert.equal(
      findCycle(arrows.map(({ from, to }) => ({ from, to: resolveImport({ from, to }) })))?.join(' -> '),
      undefined,
    );
  });
});

describe('an include', () => {
  for (const [from, to] of [
    ['src/kernels/mask.hpp', 'xsimd/xsimd.hpp'],
    ['tests/native/simd/arithmetic_test.cpp', 'xsimd/xsimd.hpp'],
    ['bench/native/main.cpp', 'emscripten/bind.h'],
    ['src/core/plan.cpp', 'immintrin.h'],
    ['src/kernels/peak.hpp', 'wasm_simd128.h'],
    ['src/core/attention.cpp', 'emscripten.h'],
    ['src/simd/simd.hpp', 'kernels/tile_size.hpp'],
    ['src/simd/math.hpp', 'sdpa/tensor_view.hpp'],
    ['src/sdpa/attention.hpp', 'core/plan.hpp'],
    ['src/kernels/mask.hpp', 'core/plan.hpp'],
    ['src/kernels/mask.hpp', 'sdpa/options.hpp'],
    ['src/kernels/mask.hpp', 'sdpa/status.hpp'],
    ['src/arch/wasm.cpp', 'core/dispatch.hpp'],
    ['src/arch/wasm.cpp', 'simd/simd.hpp'],
    ['src/core/plan.cpp', 'kernels/tile_size.hpp'],
    ['src/core/plan.cpp', 'simd/simd.hpp'],
    ['src/binding/module.cpp', 'core/plan.hpp'],
    ['src/binding/module.cpp', 'kernels/kernel_table.hpp'],
    ['src/core/plan.cpp', 'reference/attention.hpp'],
    ['src/core/plan.cpp', '../sdpa/attention.hpp'],
    ['src/elsewhere/file.cpp', 'sdpa/attention.hpp'],
  ]) {
    test(`of ${to} in ${from} is a fault`, () =>
      assert.match(checkInclude({ from, to }) ?? '', new RegExp(`^${from} includes`)));
  }

  for (const [from, to] of [
    ['src/simd/simd.hpp', 'xsimd/xsimd.hpp'],
    ['src/simd/simd.hpp', 'wasm_simd128.h'],
    ['src/simd/math.hpp', 'simd/simd.hpp'],
    ['src/kernels/mask.hpp', 'simd/math.hpp'],
    ['src/kernels/kernel_table.hpp', 'sdpa/tensor_view.hpp'],
    ['src/arch/wasm.cpp', 'kernels/make_table.hpp'],
    ['src/core/plan.hpp', 'kernels/kernel_table.hpp'],
    ['src/core/plan.cpp', 'cstddef'],
    ['src/binding/module.cpp', 'emscripten/bind.h'],
    ['tests/native/kernels/mask_test.cpp', 'kernels/mask.hpp'],
  ]) {
    test(`of ${to} in ${from} is allowed`, () => assert.equal(checkInclude({ from, to }), undefined));
  }

  test('is found in both forms and not in a comment', () => {
    const text =
      '#include <vector>\n  # include "simd/simd.hpp"\n// #include "a.hpp"\n/*\n#include "b.hpp"\n*/\nint x;\n';
    assert.deepEqual(includesOf(text), ['vector', 'simd/simd.hpp']);
  });
});

describe('an import', () => {
  for (const [from, to] of [
    ['web/load.js', './generated/glue.js'],
    ['web/cli/call.js', '../generated/glue.js'],
    ['bench/js/bench.mjs', '../../build/wasm-simd/sdpa.js'],
    ['web/demo/page.js', '../index.js'],
    ['web/demo/page.js', 'fflate'],
    ['web/demo/sections/page.js', '../../../bench/alternatives/measure.mjs'],
    ['web/demo/page.js', '/sdpa/index.js'],
    ['web/examples/attention.mjs', '../index.js'],
    ['web/examples/attention.mjs', 'fflate'],
    ['web/index.js', './io/index.js'],
    ['web/index.js', './compat/onnx.js'],
    ['web/attention.js', './cli/call.js'],
    ['web/attention.js', 'fflate'],
    ['web/load.js', 'node:fs'],
    ['web/compat/onnx.js', 'onnxruntime-web'],
    ['web/io/npz.js', '../load.js'],
    ['web/io/npz.js', 'lodash'],
    ['web/cli/call.js', '../demo/page.js'],
    ['tests/js/api/load.test.mjs', '../../../web/load.js'],
    ['tests/js/api/load.test.mjs', '../../../dist/index.js'],
    ['tests/browser/demo.test.mjs', '../../web/index.js'],
    ['bench/js/bench.mjs', '../../web/index.js'],
  ]) {
    test(`of ${to} in ${from} is a fault`, () =>
      assert.match(checkImport({ from, to }) ?? '', new RegExp(`^${from} imports`)));
  }

  for (const [from, to] of [
    ['web/runtime.js', './generated/glue.js'],
    ['web/attention.js', './runtime.js'],
    ['web/compat/onnx.js', '../errors.js'],
    ['web/io/npz.js', 'fflate'],
    ['web/io/npz.js', '../errors.js'],
    ['web/cli/call.js', '../index.js'],
    ['web/cli/call.js', 'node:fs'],
    ['web/demo/page.js', 'sdpa'],
    ['web/demo/page.js', './chart.js'],
    ['web/examples/attention.mjs', 'sdpa/io'],
    ['web/examples/attention.mjs', 'node:fs'],
    ['web/demo/sections/page.js', '../../../bench/alternatives/needle.mjs'],
    ['tests/js/api/load.test.mjs', 'sdpa'],
    ['tests/js/api/load.test.mjs', '../helpers/reference.mjs'],
    ['tests/browser/demo.test.mjs', '../../scripts/serve.mjs'],
    ['bench/js/bench.mjs', 'sdpa/slim'],
  ]) {
    test(`of ${to} in ${from} is allowed`, () => assert.equal(checkImport({ from, to }), undefined));
  }

  test('is found in each form, and not in a comment or a string', async () => {
    const root = mkdtempSync(join(tmpdir(), 'sdpa-arrows-'));
    try {
      const file = join(root, 'web/a.js');
      mkdirSync(dirname(file));
      writeFileSync(
        file,
        [
          "import './one.js';",
          "import * as two from './two.js';",
          "export { x } from './three.js';",
          "export const four = () => import('./four.js');",
          "// import './no.js';",
          'export const text = "import \'./no.js\'";',
          'console.log(two);',
        ].join('\n'),
      );
      const arrows = await readImports(root, ['web/a.js']);
      assert.deepEqual(arrows.map(({ to }) => to).sort(), ['./four.js', './one.js', './three.js', './two.js']);
      assert.ok(arrows.every(({ from }) => from === 'web/a.js'));
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});

describe('a circle', () => {
  test('is found at any length', () => {
    const arrows = ['ab', 'bc', 'cd', 'db'].map(([from, to]) => ({ from, to }));
    assert.deepEqual(findCycle(arrows), ['b', 'c', 'd', 'b']);
  });

  test('is not seen where two paths meet', () => {
    assert.equal(findCycle(['ab', 'ac', 'bd', 'cd'].map(([from, to]) => ({ from, to }))), undefined);
  });
});
