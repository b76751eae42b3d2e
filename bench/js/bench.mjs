/**
 * Times the WebAssembly builds in Node. See bench/README.md.
 *
 *   node bench/js/bench.mjs [--variants simd,relaxed,scalar] [--filter REGEX] [--turns N] [--extra-memory] [--json FILE]
 *   node bench/js/bench.mjs --list
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMain, runMain, UserError } from '../../scripts/lib/exec.mjs';
import { ROOT } from '../../scripts/lib/project.mjs';
import { readArgs } from '../command-line.mjs';
import { ARRAYS_CASE, bytes, caseName, CASES, flops, SMALLEST_CASE, WORKER_CASES } from './cases.mjs';
import { environment } from './environment.mjs';
import { arraysName, measureArrays, measureWorkers, noWorkers, workersName } from './measure-calls.mjs';
import { measureFirstResult, measureSizes, timeCase } from './measure.mjs';
import { BenchProcess } from './process.mjs';
import { COMPARISON_NAMES, runComparisons } from './run-comparisons.mjs';
import { BACKWARD_MEMORY_NAME, runBackwardMemory, runExtraMemory } from './run-memory.mjs';
import { arraysText, caseText, digits, kilobytes, workersText } from './text.mjs';

/** @typedef {import('sdpa').Variant} Variant */

/** @template T @typedef {import('./measure-calls.mjs').CallResult<T>} CallResult */

/** @type {Variant[]} */
const VARIANTS = ['simd', 'relaxed', 'scalar'];

/**
 * @typedef {object} Results what --json writes
 * @property {import('./environment.mjs').Environment} environment
 * @property {number} turns
 * @property {Partial<Record<Variant, string>>} skipped builds that do not run here, and why
 * @property {boolean} [relaxedFused] whether this engine's relaxed multiply-add rounds once
 * @property {import('./measure.mjs').CaseResult[]} cases
 * @property {{ variant: Variant, resident: number, arrays: number }[]} [smallestCall] µs
 * @property {CallResult<import('./measure-calls.mjs').ArraysTiming>} [arraysCall]
 * @property {{ skipped?: string, cases: CallResult<import('./measure-calls.mjs').WorkersTiming>[] }} [workers]
 * @property {import('./measure-comparisons.mjs').Comparisons} [comparisons] calls beside a plain one in the same turns
 * @property {import('./measure.mjs').FirstResult[]} [firstResult]
 * @property {import('./measure.mjs').Sizes} [sizes]
 * @property {import('./measure.mjs').BackwardMemory[]} [backwardMemory]
 * @property {import('./measure.mjs').Memory} [memory]
 */

/** Names of what is not a case of the table. */
const NAMES = {
  smallest: caseName(SMALLEST_CASE).replace('prefill', 'smallest'),
  arrays: arraysName(ARRAYS_CASE),
  firstResult: 'load/first-result',
  sizes: 'size',
};

/** @param {string[]} args */
function readOptions(args) {
  const values = readArgs(args, {
    variants: { type: 'string' },
    filter: { type: 'string' },
    turns: { type: 'string' },
    json: { type: 'string' },
    'extra-memory': { type: 'boolean' },
    list: { type: 'boolean' },
  });
  const variants = values.variants === undefined ? VARIANTS : values.variants.split(',');
  const unknown = variants.filter((name) => !VARIANTS.includes(/** @type {Variant} */ (name)));
  if (unknown.length) throw new UserError(`--variants takes ${VARIANTS.join(', ')}, got ${unknown.join(', ')}`);
  const turns = Number(values.turns ?? 7);
  if (!Number.isInteger(turns) || turns < 1)
    throw new UserError(`--turns takes a whole number from 1 on, got ${values.turns}`);
  return {
    variants: /** @type {Variant[]} */ (variants),
    asked: values.variants !== undefined,
    turns,
    filter: pattern(values.filter ?? ''),
    extraMemory: values['extra-memory'] ?? false,
    json: values.json,
    list: values.list ?? false,
  };
}

/** @param {string} source */
function pattern(source) {
  try {
    return new RegExp(source);
  } catch (error) {
    throw new UserError(
      `--filter takes a regular expression, got ${source} (${error instanceof Error ? error.message : error})`,
    );
  }
}

/** @param {string} text */
const print = (text) => process.stdout.write(`${text}\n`);

/**
 * The arguments as a shell takes them, with files as seen from the checkout: a results file names no other folder of the machine.
 * @param {string[]} args
 */
function portable(args) {
  return args.map((argument) => {
    const file = relative(ROOT, argument);
    const name = !isAbsolute(argument) ? argument : file.startsWith('..') ? basename(file) : file;
    return /^[\w./,:=-]*$/.test(name) ? name : `'${name}'`;
  });
}

/**
 * @param {ReturnType<typeof readOptions>} options
 * @param {Results} results filled as it goes
 */
async function runBuilds({ variants, asked, turns, filter }, results) {
  const cases = CASES.filter((c) => filter.test(caseName(c)));
  const calls = [
    NAMES.smallest,
    NAMES.arrays,
    ...WORKER_CASES.map(workersName),
    ...COMPARISON_NAMES,
    BACKWARD_MEMORY_NAME,
  ];
  if (!cases.length && !calls.some((name) => filter.test(name))) return;
  /** @type {{ process: BenchProcess, arithmetic: string }[]} */
  const builds = [];
  try {
    for (const variant of variants) {
      const bench = new BenchProcess(variant);
      const { skipped, arithmetic = '', fused } = await bench.ask('start', variant);
      if (skipped) {
        bench.close();
        if (asked) throw new UserError(`the ${variant} build does not run here: ${skipped}`);
        results.skipped[variant] = skipped;
        print(`skipped: the ${variant} build (${skipped})`);
        continue;
      }
      if (fused !== undefined) results.relaxedFused = fused;
      builds.push({ process: bench, arithmetic });
    }
    for (const c of cases) {
      const result = await timeCase(c, builds, turns);
      results.cases.push(result);
      print(caseText(result));
    }
    const processes = builds.map(({ process: bench }) => bench);
    await runCalls(processes, turns, filter, results);
    await runWorkers(processes, turns, filter, results);
    const comparisons = await runComparisons(processes, turns, filter, print);
    if (comparisons) results.comparisons = comparisons;
  } finally {
    for (const { process: bench } of builds) bench.close();
  }
}

/**
 * @param {readonly BenchProcess[]} builds
 * @param {number} turns
 * @param {RegExp} filter
 * @param {Results} results filled as it goes
 */
async function runCalls(builds, turns, filter, results) {
  if (filter.test(NAMES.smallest)) {
    print(NAMES.smallest);
    results.smallestCall = [];
    for (const build of builds) {
      const { resident, arrays } = await build.ask('smallest');
      results.smallestCall.push({ variant: build.variant, resident, arrays });
      print(`  ${build.variant.padEnd(8)}${digits(resident)} µs resident, ${digits(arrays)} µs from and to arrays`);
    }
  }
  if (filter.test(NAMES.arrays)) print(arraysText((results.arraysCall = await measureArrays(builds, turns))));
}

/**
 * @param {readonly BenchProcess[]} builds
 * @param {number} turns
 * @param {RegExp} filter
 * @param {Results} results filled as it goes
 */
async function runWorkers(builds, turns, filter, results) {
  const cases = WORKER_CASES.filter((c) => filter.test(workersName(c)));
  // Without SIMD nobody is in a hurry, and its calls take long.
  const fast = builds.filter(({ variant }) => variant !== 'scalar');
  if (!cases.length || !fast.length) return;
  const skipped = noWorkers();
  results.workers = { ...(skipped !== undefined && { skipped }), cases: [] };
  if (skipped !== undefined) return print(`skipped: workers (${skipped})`);
  for (const c of cases) {
    const found = await measureWorkers(c, fast, turns);
    results.workers.cases.push(found);
    print(workersText(found));
  }
}

/**
 * @param {ReturnType<typeof readOptions>} options
 * @param {Results} results filled as it goes
 */
async function runPackage({ variants, turns, filter, extraMemory }, results) {
  if (filter.test(NAMES.firstResult)) {
    print(`${NAMES.firstResult}  (12 heads, 128 tokens, D 64, in a fresh process)`);
    results.firstResult = [];
    for (const variant of /** @type {const} */ (['auto', ...variants.filter((name) => !results.skipped[name])])) {
      const found = await measureFirstResult(variant, Math.max(turns, 5));
      results.firstResult.push(found);
      const { chosen, loadToResultMs, loadMs, callMs, importMs } = found;
      const label = variant === 'auto' ? `auto: ${chosen}` : variant;
      print(
        `  ${label.padEnd(14)}${digits(loadToResultMs)} ms = load ${digits(loadMs)} + first call ${digits(callMs)}; import before it ${digits(importMs)} ms`,
      );
    }
  }
  if (filter.test(NAMES.sizes)) {
    const sizes = (results.sizes = await measureSizes());
    print(
      `${NAMES.sizes}\n  default entry  ${kilobytes(sizes.entryGzip)} bundled, minified and gzipped, all builds in it`,
    );
    for (const variant of VARIANTS) {
      const { raw, gzip } = sizes.wasm[variant];
      print(`  ${`${variant}.wasm`.padEnd(15)}${kilobytes(raw)} raw, ${kilobytes(gzip)} gzipped`);
    }
  }
  const fast = variants.filter((name) => name !== 'scalar' && !results.skipped[name]);
  if (filter.test(BACKWARD_MEMORY_NAME) && fast.length) await runBackwardMemory(fast, results, print);
  if (extraMemory) await runExtraMemory(results, print);
}

/** @param {string[]} args */
async function main(args) {
  const options = readOptions(args);
  if (options.list) {
    for (const c of CASES) if (options.filter.test(caseName(c))) print(`${caseName(c)} ${flops(c)} ${bytes(c)}`);
    return;
  }
  /** @type {Results} */
  const results = {
    environment: environment(fileURLToPath(import.meta.url), portable(args)),
    turns: options.turns,
    skipped: {},
    cases: [],
  };
  const { machine, versions } = results.environment;
  print(
    `${machine.cpu}, ${machine.cores} cores; Node ${versions.node}, V8 ${versions.v8}, Emscripten ${versions.emscripten}`,
  );
  await runBuilds(options, results);
  await runPackage(options, results);
  if (options.json) {
    const file = resolve(options.json);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify(results, rounded, 2)}\n`);
  }
}

/** Five digits are more than a timing has. @param {string} _key @param {unknown} value */
const rounded = (_key, value) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
