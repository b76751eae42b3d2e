/**
 * Prints a results file of bench.mjs as Markdown: `node bench/js/report.mjs bench/results/FILE.json`.
 */

import { readFileSync } from 'node:fs';
import { isMain, runMain, UserError } from '../../scripts/lib/exec.mjs';
import { digits, kilobytes, megabytes, NOISY, percent } from './text.mjs';

/** @typedef {import('./bench.mjs').Results} Results */
/** @typedef {import('sdpa').Variant} Variant */

/**
 * @param {string[]} head
 * @param {string[][]} rows
 * @returns {string[]} lines; every column but the first is right-aligned
 */
function table(head, rows) {
  /** @param {string[]} cells */
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i ? '---:' : '---'))), ...rows.map(line)];
}

/**
 * A loop at less than half of the registers' speed ran in the engine's unoptimised code: no limit to compare with.
 * @param {Results['cases'][number]['timings'][number]} timing
 */
const loopCounts = ({ peak }) => peak.loop >= peak.registers / 2;

/** @param {Results} results @returns {string[]} */
function caseTable({ cases }) {
  const variants = [...new Set(cases.flatMap(({ timings }) => timings.map(({ variant }) => variant)))];
  const arithmetic = variants.map(
    (variant) => cases[0].timings.find((timing) => timing.variant === variant)?.peak.arithmetic ?? '',
  );
  const rows = cases.map(({ name, timings }) => [
    `\`${name.replace('attention/', '')}\``,
    ...variants.map((variant) => {
      const timing = timings.find((one) => one.variant === variant);
      if (!timing) return '–';
      const { ms, gflops, gbps, shareOfRegisters, otherLoad } = timing;
      const ofLoop = loopCounts(timing) ? percent(timing.shareOfLoop) : '–';
      const speed =
        gbps === undefined
          ? `${digits(gflops)} GFLOP/s, ${percent(shareOfRegisters)} / ${ofLoop}`
          : `${digits(gbps)} GB/s, ${digits(gflops)} GFLOP/s`;
      return `${digits(ms)} ms, ${speed}${otherLoad > NOISY ? ' (noisy)' : ''}`;
    }),
  ]);
  const peaks = variants.map((variant, i) => {
    const found = cases.flatMap(({ timings }) =>
      timings.filter((timing) => timing.variant === variant && loopCounts(timing)),
    );
    /** @param {'registers' | 'loop'} loop */
    const range = (loop) => {
      const rates = found.map(({ peak }) => peak[loop]);
      return `${digits(Math.min(...rates))} to ${digits(Math.max(...rates))}`;
    };
    return `${variant} (${arithmetic[i]}): ${range('registers')} in registers, ${range('loop')} in the loop`;
  });
  return [
    ...table(['case', ...variants], rows),
    '',
    'The shares are of the peak of the same arithmetic in registers / in a matrix product’s loop from the first-level cache, ' +
      `measured around each case, in GFLOP/s: ${peaks.join('; ')}. A dash: the engine had not optimised the loop when it was timed.`,
  ];
}

/** @param {Results} results @returns {string[][]} rows of two */
function otherRows({ smallestCall, firstResult, sizes, memory }) {
  const rows = [];
  for (const { variant, resident, arrays } of smallestCall ?? []) {
    rows.push([
      `smallest call (1 head, 4×4, D 8), ${variant}`,
      `${digits(resident)} µs resident, ${digits(arrays)} µs on arrays`,
    ]);
  }
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
  const { environment, turns, skipped, cases } = results;
  const { machine, versions, date, commit, command } = environment;
  const lines = [];
  if (cases.length) lines.push(...caseTable(results), '');
  const rows = otherRows(results);
  if (rows.length) lines.push(...table(['what', 'measured'], rows), '');
  for (const [variant, reason] of Object.entries(skipped)) lines.push(`Not measured: ${variant} (${reason}).`, '');
  lines.push(
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}; Node ${versions.node} (V8 ${versions.v8}), ` +
      `Emscripten ${versions.emscripten}, sdpa ${versions.sdpa} at ${commit.slice(0, 10)}${commit.endsWith('-dirty') ? ' with changes' : ''}; ` +
      `one thread, medians of ${turns} turns; ${date.slice(0, 10)}; \`${command}\``,
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
