/**
 * Prints a results file of bench.mjs as Markdown: `node bench/js/report.mjs bench/results/FILE.json`.
 */

import { readFileSync } from 'node:fs';
import { isMain, runMain, UserError } from '../../scripts/lib/exec.mjs';
import { code, known, noise, table, variantsOf } from './markdown.mjs';
import { comparisonTables } from './report-comparisons.mjs';
import { digits, kilobytes, megabytes, percent } from './text.mjs';

/** @typedef {import('./bench.mjs').Results} Results */

/**
 * A loop at less than half of the registers' speed was held up by something: no limit to compare with.
 * @param {Results['cases'][number]['timings'][number]} timing
 */
const loopCounts = ({ peak }) => peak.loop >= peak.registers / 2;

/** @param {Results} results @returns {string[]} */
function caseTable({ cases }) {
  const variants = variantsOf(cases);
  const arithmetic = variants.map(
    (variant) => cases[0].timings.find((timing) => timing.variant === variant)?.peak.arithmetic ?? '',
  );
  const rows = cases.map(({ name, timings }) => [
    code(name),
    ...variants.map((variant) => {
      const timing = timings.find((one) => one.variant === variant);
      if (!timing) return '–';
      const { ms, gflops, shareOfRegisters, otherLoad } = timing;
      const ofLoop = loopCounts(timing) ? percent(timing.shareOfLoop) : '–';
      const speed = `${digits(gflops)} GFLOP/s, ${percent(shareOfRegisters)} / ${ofLoop}`;
      return `${digits(ms)} ms, ${speed}${noise(otherLoad)}`;
    }),
  ]);
  const peaks = variants.map((variant, i) => {
    const found = cases.flatMap(({ timings }) =>
      timings.filter((timing) => timing.variant === variant && loopCounts(timing)),
    );
    /** @param {'registers' | 'loop'} loop */
    const range = (loop) => {
      const rates = found.map(({ peak }) => peak[loop]);
      return rates.length ? `${digits(Math.min(...rates))} to ${digits(Math.max(...rates))}` : '–';
    };
    return `${variant} (${arithmetic[i]}): ${range('registers')} in registers, ${range('loop')} in the loop`;
  });
  return [
    ...table(['case', ...variants], rows),
    '',
    'The shares are of the peak of the same arithmetic in registers / in a matrix product’s loop from the first-level cache, ' +
      `measured around each case, in GFLOP/s: ${peaks.join('; ')}. A dash: the loop ran at less than half of the registers’ speed, which is no limit to compare with.`,
  ];
}

/**
 * Decode again, where reading the keys and values is the limit; results from before the bandwidth was measured have dashes.
 * @param {Results} results
 * @returns {string[]}
 */
function decodeTable({ cases }) {
  const found = cases.filter(({ timings }) => timings.some(({ gbps }) => gbps !== undefined));
  if (!found.length) return [];
  const variants = variantsOf(found);
  const rows = found.map(({ name, timings }) => [
    code(name),
    ...variants.map((variant) => {
      const { gbps, read, overLimit } = timings.find((one) => one.variant === variant) ?? {};
      return gbps === undefined ? '–' : `${digits(gbps)} of ${known(read)} GB/s, ${known(overLimit, '×')}`;
    }),
  ]);
  return [
    ...table(['decode', ...variants], rows),
    '',
    'GB/s: keys, values, query and result once over the time, of what a loop reaches that only reads as many bytes. ×: the time over ' +
      'the least that reading at that speed or computing at the loop’s peak takes, whichever is longer.',
    '',
  ];
}

/** @param {Results} results @returns {string[]} */
function workersTable({ workers }) {
  if (!workers?.cases.length) return [];
  const rows = workers.cases.flatMap(({ name, timings }) =>
    timings.map(({ variant, sync, one, two, ratio, otherLoad }) => [
      `${code(name)}, ${variant}`,
      `${digits(sync)} ms`,
      `${digits(one)} ms`,
      `${digits(two)} ms`,
      `${digits(ratio)}${noise(otherLoad)}`,
    ]),
  );
  return [
    ...table(['`attentionAsync` on plain arrays; sharded caches', 'sync', '1 worker', '2 workers', '1 / 2'], rows),
    '',
  ];
}

/** @param {Results} results @returns {string[][]} rows of two */
function otherRows({ smallestCall, arraysCall, workers, firstResult, sizes, backwardMemory, memory }) {
  const rows = [];
  for (const { variant, resident, arrays } of smallestCall ?? []) {
    rows.push([
      `smallest call (1 head, 4×4, D 8), ${variant}`,
      `${digits(resident)} µs resident, ${digits(arrays)} µs on arrays`,
    ]);
  }
  // A whole run without these is older than they are.
  if (smallestCall && !arraysCall) rows.push(['plain arrays against resident tensors', '–']);
  for (const { variant, resident, arrays, ratio, otherLoad } of arraysCall?.timings ?? []) {
    rows.push([
      `${code(arraysCall?.name ?? '')}, ${variant}: plain arrays against resident tensors`,
      `${digits(arrays)} ms against ${digits(resident)} ms: ${digits(ratio)}×${noise(otherLoad)}`,
    ]);
  }
  if (smallestCall && !workers) rows.push(['two workers against one', '–']);
  if (workers?.skipped !== undefined) rows.push(['two workers against one', `not measured: ${workers.skipped}`]);
  for (const { variant, chosen, loadToResultMs, importMs } of firstResult ?? []) {
    rows.push([
      `load to first result (12 heads, 128², D 64), ${variant === 'auto' ? `auto (takes ${chosen})` : variant}`,
      `${digits(loadToResultMs)} ms, after ${digits(importMs)} ms of import`,
    ]);
  }
  if (sizes) {
    rows.push(['default entry with all builds, minified and gzipped', kilobytes(sizes.entryGzip)]);
    for (const [variant, { raw }] of Object.entries(sizes.wasm)) rows.push([`${variant} build, raw`, kilobytes(raw)]);
  }
  for (const { variant, arrays, allocated, resident } of backwardMemory ?? []) {
    rows.push([
      `8192 × 8192 × 64, one head, forward and backward on arrays, ${variant}: memory in all`,
      `${megabytes(resident)}: ${megabytes(arrays)} of inputs, results and gradients, ${megabytes(allocated)} for copies and work`,
    ]);
  }
  if (memory) {
    rows.push([
      `32 768 × 32 768 × 64 causal, one head, ${memory.variant}: memory beside inputs and result`,
      `${megabytes(memory.extra)} allocated, wasm memory ${megabytes(memory.wasmExtra)} larger than them`,
    ]);
  }
  return rows;
}

/**
 * @param {Results} results
 * @returns {string} Markdown
 */
export function report(results) {
  const { environment, turns, skipped, cases, workers } = results;
  const { machine, versions, date, commit, command } = environment;
  const lines = [];
  if (cases.length) lines.push(...caseTable(results), '', ...decodeTable(results));
  lines.push(...comparisonTables(results), ...workersTable(results));
  const rows = otherRows(results);
  if (rows.length) lines.push(...table(['what', 'measured'], rows), '');
  for (const [variant, reason] of Object.entries(skipped)) lines.push(`Not measured: ${variant} (${reason}).`, '');
  lines.push(
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}; Node ${versions.node} (V8 ${versions.v8}), ` +
      `Emscripten ${versions.emscripten}, sdpa ${versions.sdpa} at ${commit.slice(0, 10)}${commit.endsWith('-dirty') ? ' with changes' : ''}; ` +
      `one thread${workers?.cases.length ? ' but for workers' : ''}, medians of ${turns} turns; ${date.slice(0, 10)}; \`${command}\``,
  );
  return `${lines.join('\n')}\n`;
}

if (isMain(import.meta.url)) {
  runMain(async () => {
    const file = process.argv[2];
    if (file === undefined || process.argv.length > 3) throw new UserError('usage: node bench/js/report.mjs FILE.json');
    process.stdout.write(report(JSON.parse(readFileSync(file, 'utf8'))));
  });
}
