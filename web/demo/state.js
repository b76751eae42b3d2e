// What can be set on the page, and its form in the address.

/** Stops of the slider: 128 to 32 768, two to an octave. */
export const stops = Array.from({ length: 17 }, (_, i) => 2 ** (7 + Math.floor(i / 2)) * (i % 2 ? 1.5 : 1));

/** @type {readonly import('./run.js').Setting['build'][]} */
export const builds = ['auto', 'relaxed', 'simd', 'scalar'];

/** @type {import('./run.js').Setting} */
export const initial = { tokens: 8192, causal: true, build: 'auto' };

/**
 * @param {import('./run.js').Setting} setting
 * @returns {string} `#tokens=8192&causal=1&build=auto`
 */
export function toHash({ tokens, causal, build }) {
  return `#${new URLSearchParams({ tokens: String(tokens), causal: causal ? '1' : '0', build })}`;
}

/**
 * What is missing or makes no sense is as at the start; a number of tokens moves to the nearest stop.
 * @param {string} hash
 * @returns {import('./run.js').Setting}
 */
export function fromHash(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  const tokens = Number(given.get('tokens'));
  const causal = given.get('causal');
  return {
    tokens: tokens > 0 ? stops[nearestStop(tokens)] : initial.tokens,
    causal: causal === null ? initial.causal : causal !== '0' && causal !== 'false',
    build: builds.find((build) => build === given.get('build')) ?? initial.build,
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
