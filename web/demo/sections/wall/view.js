// What the section shows of a setting and of a run.

import { byId } from '../../parts/dom.js';
import { duration, durationText, power, short, size, sizeText, whole } from '../../parts/format.js';
import { headDim } from './run.js';

/** Largest error that the float32 kernels may have on numbers of this kind. */
export const errorBound = 2e-6;

/** @param {number} tokens */
export const plainBytes = (tokens) => tokens * tokens * Float32Array.BYTES_PER_ELEMENT;

/** Query, key, value and output. @param {number} tokens */
export const arrayBytes = (tokens) => 4 * tokens * headDim * Float32Array.BYTES_PER_ELEMENT;

/** Everything that a run held at once. @param {import('./run.js').Outcome} outcome */
export const heldBytes = ({ memory, output }) => memory.peak + output;

/**
 * @param {string} id
 * @param {string} text
 * @param {number} [exact] the number behind the text, for scripts
 */
export function write(id, text, exact) {
  const target = byId(id);
  target.textContent = text;
  if (exact !== undefined) target.dataset.value = String(exact);
}

/**
 * The two numbers and the two squares.
 * @param {number} tokens
 * @param {number | undefined} measured bytes, where this number of tokens has been run
 */
export function showMemory(tokens, measured) {
  const ours = measured ?? arrayBytes(tokens);
  const plain = plainBytes(tokens);
  const [oursAmount, oursUnit] = size(ours);
  const [plainAmount, plainUnit] = size(plain);
  write('ours-amount', oursAmount, ours);
  write('ours-unit', oursUnit);
  write(
    'ours-note',
    measured === undefined
      ? 'for query, key, value and output: sdpa needs little more. Run measures it'
      : 'measured: all that this run held at once, query, key, value and output included',
  );
  write('plain-amount', plainAmount, plain);
  write('plain-unit', plainUnit);
  const largest = Math.max(ours, plain);
  byId('ours-square').style.setProperty('--side', String(Math.sqrt(ours / largest)));
  byId('plain-square').style.setProperty('--side', String(Math.sqrt(plain / largest)));
  byId('plain-square').style.setProperty('--above', plain < ours ? '2' : '0');
  const ratio = plain / ours;
  write(
    'scale-note',
    ratio >= 1
      ? `The areas are true to scale, ${short(ratio)} to 1. The dashed square fills while its rows are visited; it is never stored.`
      : 'The areas are true to scale. With so few tokens the matrix is the smaller of the two: it catches up fast.',
  );
}

/** @param {number} rows visited, as a share of all */
export const showVisited = (rows) => byId('plain-square').style.setProperty('--done', String(rows));

/**
 * @param {import('./run.js').Setting} setting
 * @param {import('./run.js').Outcome} outcome
 */
export function showOutcome({ causal }, outcome) {
  const { milliseconds, wall, passes, gflops, maxError, memory, inputs, output, threads } = outcome;
  byId('results').hidden = false;
  write('time', duration(milliseconds).join('\u00a0'), milliseconds);
  const mean = passes > 1 ? `, mean of ${whole(passes)} passes` : '';
  write(
    'time-note',
    threads > 0
      ? `from the call of attentionAsync() to its answer${mean}; each worker has a copy of key and value besides`
      : `inside attention()${mean}; ${durationText(wall)} with the rests in which this page draws`,
    wall,
  );
  write('speed', `${short(gflops)}\u00a0GFLOP/s`, gflops);
  write(
    'speed-note',
    `4·L²·D operations${causal ? ', half of them, being causal' : ''}; ${threads > 0 ? `${threads} worker${threads > 1 ? 's' : ''}` : 'this thread'}, ${outcome.build} build`,
  );
  const isWithin = maxError <= errorBound;
  write('error', power(maxError), maxError);
  byId('error').classList.toggle('bad', !isWithin);
  write(
    'error-note',
    `${isWithin ? 'within' : 'ABOVE'} the bound of ${power(errorBound)}: ${outcome.rowsChecked} rows against float64 in JavaScript`,
  );
  /** @type {[string, string, string, number?][]} */
  const rows = [
    ['used-build', 'Build in use', outcome.build],
    ['used-threads', 'Workers that ran', String(threads), threads],
    ['hash', 'Hash of the output’s bits', outcome.hash],
    ['inputs', 'Query, key, value', sizeText(inputs), inputs],
    ['output', 'Output', sizeText(output), output],
    ['working', 'Working memory beyond these', sizeText(memory.peak - inputs), memory.peak - inputs],
    ['peak', 'memory().peak', sizeText(memory.peak), memory.peak],
    ['held', 'memory().held after the run', sizeText(memory.held), memory.held],
    ['wasm', 'memory().wasm, the size of the WebAssembly memory', sizeText(memory.wasm), memory.wasm],
    ['blocks', 'Blocks of query rows in a pass', whole(outcome.blocks), outcome.blocks],
    ['slices', 'Slices of the run, data and check included', whole(outcome.slices), outcome.slices],
    ['longest', 'Longest slice', durationText(outcome.longestSlice), outcome.longestSlice],
    ['worst-row', 'Row with the largest error', whole(outcome.worstRow), outcome.worstRow],
    ['last-row', 'Output, last row, first numbers', outcome.lastRow.map((number) => number.toFixed(7)).join(', ')],
  ];
  byId('table').replaceChildren(...rows.map(tableRow));
}

/** @param {[string, string, string, number?]} row */
function tableRow([id, name, text, exact]) {
  const row = document.createElement('tr');
  const head = document.createElement('th');
  head.scope = 'row';
  head.textContent = name;
  const cell = document.createElement('td');
  cell.id = id;
  cell.textContent = text;
  if (exact !== undefined) cell.dataset.value = String(exact);
  row.append(head, cell);
  return row;
}

const featureNames = /** @type {const} */ ({
  webAssembly: 'WebAssembly',
  simd: '128-bit SIMD',
  relaxed: 'relaxed SIMD',
  relaxedFused: 'fused multiply-add',
  sharedMemory: 'shared memory',
  float16Array: 'Float16Array',
});

/** @param {import('sdpa').Features} features */
export function showFeatures(features) {
  const items = Object.entries(featureNames).map(([key, name]) => {
    const has = features[/** @type {keyof typeof featureNames} */ (key)];
    const item = document.createElement('li');
    item.textContent = has ? name : `no ${name}`;
    item.classList.toggle('missing', !has);
    return item;
  });
  byId('features').replaceChildren(...items);
}
