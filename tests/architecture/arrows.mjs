/**
 * Which folder may include or import what: the table of CONTRIBUTING.md as data, and the check of single arrows
 * against it.
 *
 * A C++ header of ours is named from src/ (`kernels/mask.hpp`); a JavaScript file from the checkout (`web/load.js`).
 */

import { posix } from 'node:path';

/** @typedef {{ from: string, to: string }} Arrow `to`: one of our files, or what stands in the include or import */

/** What each folder of src/ may include besides the standard library and itself. */
const CPP_TABLE = {
  simd: [],
  sdpa: [],
  kernels: ['simd/', 'sdpa/tensor_view.hpp'],
  arch: ['kernels/'],
  core: ['sdpa/', 'kernels/kernel_table.hpp'],
  binding: ['sdpa/'],
  unpack: [],
  reference: ['sdpa/'],
};

/** System headers that belong to one folder alone. */
const CPP_SYSTEM = [
  { what: 'xsimd', pattern: /^xsimd\//, folder: 'simd' },
  {
    what: 'SIMD intrinsics',
    pattern: /^(wasm_simd128|[a-z]*mmintrin|immintrin|arm_neon|x86intrin)\.h$/,
    folder: 'simd',
  },
  { what: 'Emscripten', pattern: /^emscripten(\/|\.h$)/, folder: 'binding' },
];

const CPP_FOLDERS = Object.keys(CPP_TABLE);

/**
 * @param {string} text of a C++ file
 * @returns {string[]} what it includes, in order
 */
export function includesOf(text) {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, '');
  return [...code.matchAll(/^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]/gm)].map((match) => match[1]);
}

/**
 * @param {Arrow} arrow from a C++ file (`src/kernels/mask.hpp`, `tests/native/…`) to an include
 * @returns {string | undefined} what is wrong
 */
export function checkInclude({ from, to }) {
  const folder = /^src\/([^/]+)\//.exec(from)?.[1];
  const wrong = (/** @type {string} */ why) => `${from} includes ${to}: ${why}`;
  for (const { what, pattern, folder: owner } of CPP_SYSTEM) {
    if (pattern.test(to) && folder !== owner) return wrong(`${what} belongs to src/${owner} alone`);
  }
  if (to.split('/').includes('..')) return wrong('headers are named from src/');
  const target = to.split('/')[0];
  if (folder === undefined) return undefined; // tests and benches may look anywhere in src/
  if (!(folder in CPP_TABLE)) return wrong(`src/${folder} is not in the table of folders`);
  if (!to.includes('/') || !CPP_FOLDERS.includes(target) || target === folder) return undefined;
  const allowed = CPP_TABLE[/** @type {keyof typeof CPP_TABLE} */ (folder)];
  if (allowed.some((prefix) => to === prefix || (prefix.endsWith('/') && to.startsWith(prefix)))) return undefined;
  return wrong(`src/${folder} may include ${['the standard library', 'itself', ...allowed].join(', ')}`);
}

/** The glue that Emscripten writes. */
const GLUE = /(^|\/)generated\/glue\.js$|(^|\/)build\/wasm-/;

/**
 * Rules for imports, the first that fits the importing file counts. `inside`: folders that relative imports may lead
 * to.
 *
 * @type {{ files: RegExp, inside: RegExp, packages: RegExp, why: string }[]}
 */
const JS_TABLE = [
  {
    files: /^web\/demo\//,
    inside: /^(web\/demo\/|bench\/alternatives\/(needle|methods)\.mjs$)/,
    packages: /^(sdpa(\/|$)|uplot$)/,
    why: 'the page imports sdpa and its plotting library by name, its own files, and the task of the bench of alternatives',
  },
  {
    files: /^web\/examples\//,
    inside: /(?!)/,
    packages: /^(sdpa(\/|$)|node:)/,
    why: 'an example is one file, and imports sdpa by name',
  },
  {
    files: /^web\/cli\//,
    inside: /^web\/(?!demo\/)/,
    packages: /./,
    why: 'the command line imports nothing of the page',
  },
  {
    files: /^web\/io\//,
    inside: /^web\/(io\/|errors\.js$|tensor\.js$)/,
    packages: /^(fflate$|node:)/,
    why: 'web/io imports its own files, the errors, the tensors and its zip library',
  },
  {
    files: /^web\/compat\//,
    inside: /^web\/(compat\/|[^/]+$)/,
    packages: /(?!)/,
    why: 'web/compat imports its own files and those of web/, and no package',
  },
  {
    files: /^web\//,
    inside: /^web\/(?!demo\/|cli\/|io\/|compat\/)/,
    packages: /(?!)/,
    why: 'the library imports its own files downwards, and no package',
  },
  {
    files: /^tests\//,
    inside: /^(tests|scripts)\//,
    packages: /./,
    why: 'tests import sdpa by name, other tests and the scripts',
  },
  {
    files: /^bench\//,
    inside: /^(bench|tests|scripts)\//,
    packages: /./,
    why: 'benches import sdpa by name, benches, tests and the scripts',
  },
];

/**
 * @param {Arrow} arrow from a JavaScript file to an import specifier
 * @returns {string} the file (from the checkout) or package that it means
 */
export function resolveImport({ from, to }) {
  return /^\.{1,2}(\/|$)/.test(to) ? posix.join(posix.dirname(from), to) : to;
}

/**
 * @param {Arrow} arrow
 * @returns {string | undefined} what is wrong
 */
export function checkImport({ from, to }) {
  const target = resolveImport({ from, to });
  const wrong = (/** @type {string} */ why) => `${from} imports ${to}: ${why}`;
  if (GLUE.test(target) && from !== 'web/runtime.js') return wrong('web/runtime.js is the only importer of the glue');
  const rule = JS_TABLE.find(({ files }) => files.test(from));
  if (!rule) return undefined;
  const isFile = target !== to || to.startsWith('/') || to.startsWith('file:');
  return (isFile ? rule.inside : rule.packages).test(target) ? undefined : wrong(rule.why);
}

/**
 * Arrows lead downwards: files must not import each other in a circle.
 *
 * @param {Arrow[]} arrows between files
 * @returns {string[] | undefined} the files of one circle, the first again at the end
 */
export function findCycle(arrows) {
  /** @type {Map<string, string[]>} */
  const next = new Map();
  for (const { from, to } of arrows) next.set(from, [...(next.get(from) ?? []), to]);
  /** @type {Set<string>} */
  const done = new Set();
  /** @param {string} file @param {string[]} path @returns {string[] | undefined} */
  const visit = (file, path) => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const target of next.get(file) ?? []) {
      const cycle = visit(target, [...path, file]);
      if (cycle) return cycle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of next.keys()) {
    const cycle = visit(file, []);
    if (cycle) return cycle;
  }
  return undefined;
}
