// What can be set in this section, and its form in the address.

/** Stops of the slider: 128 to 65 536, two to an octave. */
export const stops = Array.from({ length: 19 }, (_, i) => 2 ** (7 + Math.floor(i / 2)) * (i % 2 ? 1.5 : 1));

/** @type {readonly import('./run.js').Setting['build'][]} */
export const builds = ['auto', 'relaxed', 'simd', 'scalar'];

/** Most workers that can be chosen. */
const mostThreads = 8;

/**
 * Numbers of workers: none, one, and by twos up to the cores.
 * @param {number} cores
 * @returns {number[]}
 */
export const threadStops = (cores) =>
  [0, 1, 2, 3, 4, 6, 8].filter((count) => count <= Math.min(mostThreads, Math.max(1, cores)));

/** @type {import('./run.js').Setting} */
export const initial = { tokens: 8192, causal: true, build: 'auto', threads: 0 };

/**
 * @param {import('./run.js').Setting} setting
 * @returns {Record<string, string>}
 */
export const toTexts = ({ tokens, causal, build, threads }) => ({
  tokens: String(tokens),
  causal: causal ? '1' : '0',
  build,
  threads: String(threads),
});

/**
 * What is missing or makes no sense is as at the start; a number of tokens moves to the nearest stop.
 * @param {Readonly<Record<string, string>>} given
 * @returns {import('./run.js').Setting}
 */
export function fromTexts({ tokens, causal, build, threads }) {
  const count = Number(tokens);
  const workers = Number(threads);
  return {
    tokens: count > 0 ? stops[nearestStop(count)] : initial.tokens,
    causal: causal === undefined ? initial.causal : causal !== '0' && causal !== 'false',
    build: builds.find((known) => known === build) ?? initial.build,
    threads: workers > 0 ? Math.min(mostThreads, Math.round(workers)) : initial.threads,
  };
}

/**
 * @param {number} tokens
 * @returns {number} index into `stops`, nearest by ratio
 */
export function nearestStop(tokens) {
  const distances = stops.map((stop) => Math.abs(Math.log(stop / tokens)));
  return distances.indexOf(Math.min(...distances));
}
