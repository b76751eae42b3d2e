// What the package is asked in every host: the right numbers, the same bits from workers, and which build was taken. Plain JavaScript
// of the language alone, so that every engine and bundler takes it.

/**
 * @typedef {object} Report
 * @property {string} variant the build that load() took by itself
 * @property {boolean} simd what features() says of the engine
 * @property {boolean} fused whether its relaxed multiply-add is fused
 * @property {number} error the largest difference from plain float64
 * @property {boolean} same whether attentionAsync() gave the bits of attention()
 * @property {number} threads workers that ran in the end
 * @property {string} [code] of the error that load() ended with
 * @property {string} [message]
 */

/**
 * @param {{ load: Function, features: Function }} sdpa the package
 * @param {{ threads: number, least?: number, wasm?: unknown }} wanted `least` workers that are to run in the end: on a busy machine a
 *   call may be over before they have started
 * @returns {Promise<Report>}
 */
export async function check({ load, features }, { threads, least = 0, wasm }) {
  const { simd, relaxedFused } = features();
  let instance;
  try {
    instance = await load(wasm === undefined ? { threads } : { threads, wasm });
  } catch (failure) {
    return /** @type {Report} */ ({ simd, fused: relaxedFused, code: failure.code, message: String(failure.message) });
  }
  const small = { data: Float32Array.from({ length: 2 * 9 * 8 }, (_, i) => Math.sin(i * i)), shape: [1, 2, 9, 8] };
  const want = plain(small.data, 2, 9, 8);
  const got = instance.attention(small, small, small, { causal: true }).out.data;
  const error = want.reduce((most, value, i) => Math.max(most, Math.abs(value - got[i])), 0);

  const large = { data: Float32Array.from({ length: 2 * 900 * 32 }, (_, i) => Math.sin(i * i)), shape: [2, 900, 32] };
  const bits = instance.attention(large, large, large, { causal: true }).out.data;
  let same = true;
  do {
    const { out } = await instance.attentionAsync(large, large, large, { causal: true });
    same =
      same &&
      out.data.length === bits.length &&
      bits.every((/** @type {number} */ value, /** @type {number} */ i) => Object.is(value, out.data[i]));
  } while (instance.threads < least);
  return {
    variant: instance.variant,
    simd,
    fused: relaxedFused,
    error: got.length === want.length ? error : Infinity,
    same,
    threads: instance.threads,
  };
}

/**
 * Causal self-attention in float64.
 * @param {Float32Array} x
 * @param {number} heads
 * @param {number} length
 * @param {number} depth
 */
function plain(x, heads, length, depth) {
  const out = new Array(x.length).fill(0);
  for (let head = 0; head < heads; head++) {
    const at = head * length * depth;
    for (let i = 0; i < length; i++) {
      let sum = 0;
      for (let j = 0; j <= i; j++) {
        let dot = 0;
        for (let d = 0; d < depth; d++) dot += x[at + i * depth + d] * x[at + j * depth + d];
        const weight = Math.exp(dot / Math.sqrt(depth));
        sum += weight;
        for (let d = 0; d < depth; d++) out[at + i * depth + d] += weight * x[at + j * depth + d];
      }
      for (let d = 0; d < depth; d++) out[at + i * depth + d] /= sum;
    }
  }
  return out;
}
