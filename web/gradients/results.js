// Gradients in the shapes of what they are gradients of.

/**
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('./compute.js').RawGradients} RawGradients
 * @typedef {import('./read-call.js').BackwardCall} BackwardCall
 */

/**
 * @param {BackwardCall} backward
 * @param {RawGradients} raw
 */
export function presentGradients({ call, sinks }, raw) {
  const { query, key, value, bias, smoothSoftmax, alibiSlopes } = call;
  /** @type {{ dQuery: Tensor, dKey: Tensor, dValue: Tensor, dBias?: Tensor, dSinks?: Tensor, dAlibiSlopes?: Tensor, dScale: number }} */
  const result = {
    dQuery: tensor(raw.query, query.shape),
    dKey: tensor(raw.key, key.shape),
    dValue: tensor(raw.value, value.shape),
    dScale: raw.scale.reduce((sum, part) => sum + part, 0),
  };
  if (bias && raw.bias) result.dBias = tensor(raw.bias, bias.shape.slice(4 - bias.rank));
  if (sinks && raw.sinks) {
    const { data } = sinks;
    // With smoothSoftmax the call's sink is ln(e^s + 1), whose derivative is e^s / (e^s + 1).
    const slope = (/** @type {number} */ i) => (smoothSoftmax ? 1 / (1 + Math.exp(-data[i])) : 1);
    result.dSinks = tensor(
      sumHeads(raw.sinks, data.length).map((d, i) => d * slope(i)),
      sinks.shape,
    );
  }
  if (alibiSlopes && raw.alibiSlopes) {
    result.dAlibiSlopes = tensor(sumHeads(raw.alibiSlopes, alibiSlopes.data.length), alibiSlopes.shape);
  }
  return result;
}

/**
 * @param {Float32Array | Float64Array} data
 * @param {ArrayLike<number>} shape
 * @returns {Tensor}
 */
const tensor = (data, shape) => ({
  data: data instanceof Float32Array ? data : new Float32Array(data),
  shape: Array.from(shape),
  dtype: 'float32',
});

/**
 * Numbers of (B, Hq) as they are, or summed over the batch where the operand has one row of heads for all.
 * @param {Float64Array} all
 * @param {number} count of the operand's
 */
function sumHeads(all, count) {
  const sums = new Float64Array(count);
  for (let i = 0; i < all.length; i++) sums[i % count] += all[i];
  return sums;
}
