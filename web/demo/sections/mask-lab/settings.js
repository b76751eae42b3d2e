// What can be set in the lab.

/** Sizes of the two sliders. */
export const lengths = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];

/** @param {string} label @returns {import('../../parts/controls.js').RangeSpec} */
const length = (label) => ({
  kind: 'range',
  label,
  min: 0,
  max: lengths.length - 1,
  initial: lengths.indexOf(256),
  show: (index) => String(lengths[index]),
});

/** Names of patterns and what they are called. */
const patterns = /** @type {const} */ ([
  ['none', 'none'],
  ['chunk', 'chunks'],
  ['prefix', 'prefix that all may see'],
  ['longformer', 'Longformer'],
  ['bigbird', 'BigBird'],
  ['swin', 'Swin: shifted windows'],
]);

/** @satisfies {Record<string, import('../../parts/controls.js').Spec>} */
export const specs = {
  queries: length('Queries L'),
  keys: length('Keys S'),
  causal: {
    kind: 'choice',
    label: 'Causal',
    initial: 'lower-right',
    options: [
      ['off', 'off'],
      ['lower-right', 'aligned lower right'],
      ['upper-left', 'aligned upper left'],
    ],
  },
  pattern: { kind: 'choice', label: 'Pattern', initial: 'none', options: patterns },
  alibi: {
    kind: 'choice',
    label: 'ALiBi slope',
    initial: '0',
    options: [
      ['0', 'off'],
      ['0.015625', '1/64'],
      ['0.0625', '1/16'],
      ['0.25', '1/4'],
    ],
  },
  window: {
    kind: 'range',
    label: 'Window',
    min: 0,
    max: 129,
    initial: 129,
    show: (reach) => (reach === 129 ? 'off' : `${reach} beside`),
  },
  real: {
    kind: 'range',
    label: 'Real keys',
    min: 0,
    max: 100,
    step: 5,
    initial: 100,
    show: (percent) => `${percent} %`,
  },
  documents: { kind: 'range', label: 'Documents', min: 1, max: 8, initial: 1 },
  image: { kind: 'range', label: 'Window of the image', min: 1, max: 4, initial: 4 },
};

/** @typedef {import('../../parts/controls.js').Values<typeof specs>} Settings */

/** Settings from which each picture begins; what is not named is off. */
export const presets = /** @type {Record<string, Partial<Settings>>} */ ({
  'A chat model': { causal: 'lower-right' },
  'Sliding window': { causal: 'lower-right', window: 48 },
  'New tokens, long past': { causal: 'lower-right', queries: lengths.indexOf(64), keys: lengths.indexOf(384) },
  'Packed documents': { causal: 'lower-right', documents: 5 },
  'Empty rows': { causal: 'lower-right', queries: lengths.indexOf(256), keys: lengths.indexOf(128) },
  'Padded batch': { causal: 'off', real: 60 },
  BigBird: { causal: 'off', pattern: 'bigbird', queries: lengths.indexOf(512), keys: lengths.indexOf(512) },
  'Swin shift': { causal: 'off', pattern: 'swin', image: 4 },
});

/**
 * Queries and keys as they are computed: some patterns are square.
 * @param {Settings} settings
 * @returns {{ rows: number, columns: number }}
 */
export function sizesOf({ queries, keys, pattern }) {
  const rows = lengths[queries];
  if (pattern === 'swin') {
    const side = Math.floor(Math.sqrt(rows));
    return { rows: side * side, columns: side * side };
  }
  const isSquare = pattern === 'longformer' || pattern === 'bigbird';
  return { rows, columns: isSquare ? rows : lengths[keys] };
}
