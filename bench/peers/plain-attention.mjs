/** Attention in plain JavaScript on Float32Arrays: as one writes it down, and in tiles with an online softmax. */

/** @typedef {import('../js/cases.mjs').Case} Case */
/** @typedef {import('./inputs.mjs').Inputs} Inputs */

/** Rows of queries and of keys in a tile. */
const QUERY_ROWS = 32;
const KEY_ROWS = 64;

/**
 * Calls back with the offsets of each query head's first number and of its keys'.
 * @param {Case} c
 * @param {(query: number, key: number) => void} visit
 */
function forEachHead({ batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim }, visit) {
  for (let head = 0; head < batch * numHeads; head++) {
    visit(head * seqlenQ * headDim, Math.floor((head * numKvHeads) / numHeads) * seqlenKv * headDim);
  }
}

/** @param {Case} c @param {number} row @returns {number} keys that a query row sees, from the first on */
const visibleKeys = ({ option, seqlenQ, seqlenKv }, row) =>
  option === 'causal' ? row + 1 + seqlenKv - seqlenQ : seqlenKv;

/**
 * Row by row: all scores, softmax, weighted sum.
 * @param {Case} c
 * @param {Inputs} inputs
 * @returns {Float32Array} (B, H, L, D)
 */
export function naiveAttention(c, { query, key, value }) {
  const { seqlenQ, seqlenKv, headDim } = c;
  const scale = 1 / Math.sqrt(headDim);
  const out = new Float32Array(query.length);
  const weights = new Float32Array(seqlenKv);
  forEachHead(c, (queryStart, keyStart) => {
    for (let i = 0; i < seqlenQ; i++) {
      const at = queryStart + i * headDim;
      const keys = visibleKeys(c, i);
      let largest = -Infinity;
      for (let j = 0; j < keys; j++) {
        const from = keyStart + j * headDim;
        let product = 0;
        for (let d = 0; d < headDim; d++) product += query[at + d] * key[from + d];
        weights[j] = product * scale;
        largest = Math.max(largest, weights[j]);
      }
      let sum = 0;
      for (let j = 0; j < keys; j++) sum += weights[j] = Math.exp(weights[j] - largest);
      for (let j = 0; j < keys; j++) {
        const weight = weights[j] / sum;
        const from = keyStart + j * headDim;
        for (let d = 0; d < headDim; d++) out[at + d] += weight * value[from + d];
      }
    }
  });
  return out;
}

/**
 * In tiles, with a running maximum and sum for each row; four keys at a time, so that a query's number and a sum's are
 * loaded once for four products.
 * @param {Case} c
 * @param {Inputs} inputs
 * @returns {Float32Array} (B, H, L, D)
 */
export function tiledAttention(c, { query, key, value }) {
  const { seqlenQ, headDim } = c;
  const scale = 1 / Math.sqrt(headDim);
  const out = new Float32Array(query.length);
  const scores = new Float32Array(KEY_ROWS);
  const largest = new Float32Array(QUERY_ROWS);
  const sums = new Float64Array(QUERY_ROWS);
  forEachHead(c, (queryStart, keyStart) => {
    for (let i0 = 0; i0 < seqlenQ; i0 += QUERY_ROWS) {
      const rows = Math.min(QUERY_ROWS, seqlenQ - i0);
      largest.fill(-Infinity);
      sums.fill(0);
      const end = visibleKeys(c, i0 + rows - 1);
      for (let j0 = 0; j0 < end; j0 += KEY_ROWS) {
        for (let i = 0; i < rows; i++) {
          const keys = Math.min(KEY_ROWS, visibleKeys(c, i0 + i) - j0);
          if (keys <= 0) continue;
          const at = queryStart + (i0 + i) * headDim;
          const from = keyStart + j0 * headDim;
          const top = scoreKeys(scores, query, at, key, from, keys, headDim, scale);
          if (top > largest[i]) {
            const factor = Math.exp(largest[i] - top);
            largest[i] = top;
            sums[i] *= factor;
            for (let d = 0; d < headDim; d++) out[at + d] *= factor;
          }
          let sum = 0;
          for (let j = 0; j < keys; j++) sum += scores[j] = Math.exp(scores[j] - largest[i]);
          sums[i] += sum;
          addValues(out, at, scores, value, from, keys, headDim);
        }
      }
      for (let i = 0; i < rows; i++) {
        const at = queryStart + (i0 + i) * headDim;
        for (let d = 0; d < headDim; d++) out[at + d] /= sums[i];
      }
    }
  });
  return out;
}

/**
 * @param {Float32Array} scores receives a row's scaled products
 * @param {Float32Array} query
 * @param {number} at
 * @param {Float32Array} key
 * @param {number} from
 * @param {number} keys
 * @param {number} headDim
 * @param {number} scale
 * @returns {number} the largest
 */
function scoreKeys(scores, query, at, key, from, keys, headDim, scale) {
  let j = 0;
  for (; j + 4 <= keys; j += 4) {
    const k0 = from + j * headDim;
    const k1 = k0 + headDim;
    const k2 = k1 + headDim;
    const k3 = k2 + headDim;
    let s0 = 0;
    let s1 = 0;
    let s2 = 0;
    let s3 = 0;
    for (let d = 0; d < headDim; d++) {
      const q = query[at + d];
      s0 += q * key[k0 + d];
      s1 += q * key[k1 + d];
      s2 += q * key[k2 + d];
      s3 += q * key[k3 + d];
    }
    scores[j] = s0 * scale;
    scores[j + 1] = s1 * scale;
    scores[j + 2] = s2 * scale;
    scores[j + 3] = s3 * scale;
  }
  for (; j < keys; j++) {
    const k = from + j * headDim;
    let s = 0;
    for (let d = 0; d < headDim; d++) s += query[at + d] * key[k + d];
    scores[j] = s * scale;
  }
  let top = -Infinity;
  for (let n = 0; n < keys; n++) top = Math.max(top, scores[n]);
  return top;
}

/**
 * @param {Float32Array} out
 * @param {number} at
 * @param {Float32Array} weights
 * @param {Float32Array} value
 * @param {number} from
 * @param {number} keys
 * @param {number} headDim
 */
function addValues(out, at, weights, value, from, keys, headDim) {
  let j = 0;
  for (; j + 4 <= keys; j += 4) {
    const w0 = weights[j];
    const w1 = weights[j + 1];
    const w2 = weights[j + 2];
    const w3 = weights[j + 3];
    const v0 = from + j * headDim;
    const v1 = v0 + headDim;
    const v2 = v1 + headDim;
    const v3 = v2 + headDim;
    for (let d = 0; d < headDim; d++) {
      out[at + d] += w0 * value[v0 + d] + w1 * value[v1 + d] + w2 * value[v2 + d] + w3 * value[v3 + d];
    }
  }
  for (; j < keys; j++) {
    const v = from + j * headDim;
    for (let d = 0; d < headDim; d++) out[at + d] += weights[j] * value[v + d];
  }
}
