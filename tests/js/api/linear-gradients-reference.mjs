// Gradients of linear attention and of state spaces in float64: their recurrences as plain numbers, differentiated by central differences, and,
// for the gated rule, by the formulas of the backward recurrence.

import { gatedReference } from './linear-reference.mjs';

/** @param {any} tensor */
export const wide = (tensor) => ({ data: Float64Array.from(tensor.data), shape: tensor.shape });

/**
 * Σ out·dOut + Σ state·dState.
 * @param {{ out: ArrayLike<number>, state?: ArrayLike<number> }} result
 * @param {any} dOut
 * @param {any} [dState]
 */
export function lossOf({ out, state }, dOut, dState) {
  let loss = 0;
  for (let i = 0; i < out.length; i++) loss += out[i] * dOut.data[i];
  for (let i = 0; dState && state && i < state.length; i++) loss += state[i] * dState.data[i];
  return loss;
}

/**
 * Central differences of a loss with respect to one tensor.
 * @param {Float64Array} data changed and put back
 * @param {() => number} loss
 */
export function differences(data, loss) {
  const step = 1e-5;
  return data.map((x, i) => {
    data[i] = x + step;
    const above = loss();
    data[i] = x - step;
    const below = loss();
    data[i] = x;
    return (above - below) / (2 * step);
  });
}

/**
 * Backward of the gated recurrence, token by token from the last: with dS the gradient of S,
 * dS_t = e^g_{t+1}·dS_{t+1} + scale·q_t⊗do_t, dq = scale·S·do, dk = dS·v, dv = dSᵀ·k, dg = e^g·Σ S_{t−1}·dS.
 * @param {any} query one head, (L, D)
 * @param {any} key
 * @param {any} value (L, Dv)
 * @param {any} decay (L) or (L, D)
 * @param {number} scale
 * @param {any} dOut (L, Dv)
 */
export function gatedFormulas(query, key, value, decay, scale, dOut) {
  const [L, D] = query.shape;
  const Dv = value.shape[1];
  const columns = decay.shape.length === 1 ? 1 : D;
  const factor = (/** @type {number} */ t, /** @type {number} */ d) =>
    Math.exp(decay.data[t * columns + (columns === 1 ? 0 : d)]);
  const cut = (/** @type {any} */ tensor, /** @type {number} */ t) => {
    const row = tensor.data.length / L;
    return { data: tensor.data.slice(0, t * row), shape: [t, ...tensor.shape.slice(1)] };
  };
  const states = Array.from({ length: L + 1 }, (_, t) => {
    const parts = [query, key, value].map((tensor) => cut(tensor, t));
    return gatedReference(parts[0], parts[1], parts[2], { decay: cut(decay, t), scale }).state;
  });
  const dQuery = new Float64Array(L * D);
  const dKey = new Float64Array(L * D);
  const dValue = new Float64Array(L * Dv);
  const dDecay = new Float64Array(L * columns);
  const dS = new Float64Array(D * Dv);
  for (let t = L - 1; t >= 0; t--) {
    for (let d = 0; d < D; d++) {
      let dg = 0;
      for (let e = 0; e < Dv; e++) {
        const at = d * Dv + e;
        dS[at] = (t === L - 1 ? 0 : factor(t + 1, d) * dS[at]) + scale * query.data[t * D + d] * dOut.data[t * Dv + e];
        dQuery[t * D + d] += scale * states[t + 1][at] * dOut.data[t * Dv + e];
        dKey[t * D + d] += dS[at] * value.data[t * Dv + e];
        dValue[t * Dv + e] += dS[at] * key.data[t * D + d];
        dg += factor(t, d) * states[t][at] * dS[at];
      }
      dDecay[t * columns + (columns === 1 ? 0 : d)] += dg;
    }
  }
  return { dQuery, dKey, dValue, dDecay };
}
