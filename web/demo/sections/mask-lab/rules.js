// From the settings to options of attention(), and to one block mask that says the same.

import { masks } from 'sdpa';
import { sizesOf } from './settings.js';
import { paint } from './strokes.js';

/** @typedef {import('./settings.js').Settings} Settings */

/**
 * @typedef {object} Rules
 * @property {number} rows
 * @property {number} columns
 * @property {import('sdpa').AttentionOptions} options
 * @property {import('sdpa').BlockMask} mask everything that hides cells, in one
 * @property {string[]} code the options as source text, those that are in use
 * @property {string} setup lines of code that they need
 */

/**
 * @param {Settings} settings
 * @param {readonly import('./strokes.js').Stroke[]} strokes
 * @returns {Rules}
 */
export function makeRules(settings, strokes) {
  const { rows, columns } = sizesOf(settings);
  const { causal, window: reach, real, documents, alibi } = settings;
  const kvLength = Math.round((columns * real) / 100);
  const align = causal === 'upper-left' ? 'upper-left' : 'lower-right';
  // The last query stands at the last real key, or the first at the first.
  const queryOffset = align === 'lower-right' ? kvLength - rows : 0;
  const all = masks.window(rows, columns, [Infinity, Infinity], { queryOffset: 0 });
  /** @type {import('sdpa').BlockMask[]} */
  const parts = [all];
  /** @type {Record<string, any>} */
  const options = {};
  /** @type {string[]} */
  const code = [];
  let setup = '';

  const isWindowed = reach < 129;
  if (causal !== 'off') {
    options.causal = true;
    code.push('causal: true');
    parts.push(masks.causal(rows, columns, { queryOffset }));
  }
  if (isWindowed) {
    options.window = [reach, causal === 'off' ? reach : 0];
    code.push(`window: [${options.window.join(', ')}]`);
    parts.push(masks.window(rows, columns, options.window, { queryOffset }));
  }
  if (alibi !== '0') {
    options.alibiSlopes = Float32Array.of(Number(alibi));
    code.push(`alibiSlopes: Float32Array.of(${alibi})`);
  }
  if (code.length > 0 && (rows !== columns || kvLength !== columns || align === 'upper-left')) {
    options.align = align;
    code.push(`align: '${align}'`);
  }
  if (kvLength < columns) {
    options.kvLengths = Int32Array.of(kvLength);
    code.push(`kvLengths: Int32Array.of(${kvLength})`);
    const key = Int32Array.from({ length: columns }, (_, j) => Number(j >= kvLength));
    parts.push(masks.documents({ query: new Int32Array(rows), key }));
  }
  if (documents > 1) {
    const ids = (/** @type {number} */ count) =>
      Int32Array.from({ length: count }, (_, i) => Math.floor((i * documents) / count));
    options.segmentIds = { query: ids(rows), key: ids(columns) };
    setup = `const ids = (count) => Int32Array.from({ length: count }, (_, i) => Math.floor((i * ${documents}) / count));\n`;
    code.push(`segmentIds: { query: ids(${rows}), key: ids(${columns}) }`);
    parts.push(masks.documents(options.segmentIds));
  }
  const pattern = makePattern(settings, rows, columns, queryOffset);
  if (pattern) {
    options.blockMask = pattern.mask;
    code.push(`blockMask: ${pattern.code}`);
    parts.push(pattern.mask);
  }
  if (strokes.length > 0) {
    const mask = { data: paint(strokes, rows, columns), shape: [rows, columns] };
    options.mask = mask;
    setup += `const drawn = { data: new Uint8Array(${rows * columns}).fill(1), shape: [${rows}, ${columns}] }; // 0 = hidden\n`;
    code.push('mask: drawn');
    parts.push(masks.fromDense(mask));
  }
  return { rows, columns, options, mask: masks.and(...parts), code, setup };
}

/**
 * @param {Settings} settings
 * @param {number} rows
 * @param {number} columns
 * @param {number} queryOffset
 * @returns {{ mask: import('sdpa').BlockMask, code: string } | null}
 */
function makePattern({ pattern, image }, rows, columns, queryOffset) {
  const eighth = Math.max(1, rows >> 3);
  const place = `{ queryOffset: ${queryOffset} }`;
  if (pattern === 'chunk') {
    const size = Math.max(1, columns >> 2);
    return {
      mask: masks.chunk(rows, columns, size, { queryOffset }),
      code: `masks.chunk(${rows}, ${columns}, ${size}, ${place})`,
    };
  }
  if (pattern === 'prefix') {
    const length = columns >> 2;
    return {
      mask: masks.prefix(rows, columns, length, { queryOffset }),
      code: `masks.prefix(${rows}, ${columns}, ${length}, ${place})`,
    };
  }
  if (pattern === 'longformer') {
    const options = { window: eighth, globalTokens: [0, rows >> 1] };
    return {
      mask: masks.longformer(rows, options),
      code: `masks.longformer(${rows}, { window: ${eighth}, globalTokens: [0, ${rows >> 1}] })`,
    };
  }
  if (pattern === 'bigbird') {
    // With 512 tokens its blocks are the tiles.
    return {
      mask: masks.bigbird(rows, { blockSize: eighth, randomBlocks: 1 }),
      code: `masks.bigbird(${rows}, { blockSize: ${eighth}, randomBlocks: 1 })`,
    };
  }
  if (pattern === 'swin') {
    const side = Math.sqrt(rows);
    const options = { height: 2 * side, width: 2 * side, windowSize: side };
    // Of the four windows of the image, one.
    const { data } = masks.toDense(masks.swin(options));
    const from = (image - 1) * rows * rows;
    const cut = { data: data.subarray(from, from + rows * rows), shape: [rows, rows] };
    return {
      mask: masks.fromDense(cut),
      code: `masks.fromDense({ data: masks.toDense(masks.swin({ height: ${2 * side}, width: ${2 * side}, windowSize: ${side} })).data.slice(${from}, ${from + rows * rows}), shape: [${rows}, ${rows}] })`,
    };
  }
  return null;
}

/** @param {Rules} rules */
export const codeFor = ({ rows, columns, code, setup }) => `
import { load, masks } from 'sdpa';

const sdpa = await load();
const draw = (...shape) => ({ data: Float32Array.from({ length: shape[0] * shape[1] }, Math.random), shape });
const [query, key, value] = [draw(${rows}, 32), draw(${columns}, 32), draw(${columns}, 32)];
${setup}const options = { ${code.join(', ')} };
const { out, lse } = sdpa.attention(query, key, value, { ...options, returnLse: true });
const { rows } = sdpa.attentionWeights(query, key, { ...options, lse, rows: [0, ${rows - 1}] });
console.log(rows.data, ${code.some((text) => text.startsWith('blockMask')) ? 'masks.stats(options.blockMask)' : 'out.shape'});`;
