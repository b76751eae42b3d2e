// What attentionWeights() must give, from the whole matrix of weights in float64.

import assert from 'node:assert/strict';
import { forReference } from '../helpers/block-masks.mjs';
import { largestError, referenceAttention } from '../helpers/reference.mjs';

export const tolerance = 2e-6;

/**
 * The weights by definition, and what is made of them.
 * @param {any} query
 * @param {any} key
 * @param {any} options those of attention() that say what the scores are
 */
export function referenceWeights(query, key, options) {
  // The values are of no account.
  const { scores, lse } = referenceAttention(query, key, key, forReference(options));
  const [batch, numHeads, seqlenQ, seqlenKv] = sizesOf(query, key, options.layout);
  const rank = query.shape.length;
  /** @param {number} b @param {number} h @param {number} i @param {number} j */
  const at = (b, h, i, j) => ((b * numHeads + h) * seqlenQ + i) * seqlenKv + j;
  /** @param {readonly number[]} [heads] */
  const all = (heads) => heads ?? Array.from({ length: numHeads }, (_, h) => h);
  /**
   * @param {readonly number[] | undefined} heads
   * @param {number[]} rest sizes behind the heads
   * @param {(b: number, h: number, push: (x: number) => void) => void} fill
   */
  const collect = (heads, rest, fill) => {
    /** @type {number[]} */
    const data = [];
    for (let b = 0; b < batch; b++) for (const h of all(heads)) fill(b, h, (x) => data.push(x));
    return { data, shape: [batch, all(heads).length, ...rest].slice(4 - rank) };
  };
  /** Keys of a row that take part, the largest weight first. @param {number} b @param {number} h @param {number} i */
  const ranked = (b, h, i) =>
    Array.from({ length: seqlenKv }, (_, j) => j)
      .filter((j) => scores.biased[at(b, h, i, j)] !== -Infinity)
      .sort((x, y) => scores.weights[at(b, h, i, y)] - scores.weights[at(b, h, i, x)] || x - y);
  return {
    lse,
    seqlenQ,
    seqlenKv,
    numHeads,
    /** @param {any} wanted */
    rows: ({ rows, heads }) =>
      collect(heads, [rows.length, seqlenKv], (b, h, push) => {
        for (const i of rows) for (let j = 0; j < seqlenKv; j++) push(scores.weights[at(b, h, i, j)]);
      }),
    /** @param {any} wanted */
    columns: ({ columns, heads }) =>
      collect(heads, [seqlenQ, columns.length], (b, h, push) => {
        for (let i = 0; i < seqlenQ; i++) for (const j of columns) push(scores.weights[at(b, h, i, j)]);
      }),
    /** @param {any} wanted */
    columnSums: ({ heads }) =>
      collect(heads, [seqlenKv], (b, h, push) => {
        for (let j = 0; j < seqlenKv; j++) {
          let sum = 0;
          for (let i = 0; i < seqlenQ; i++) sum += scores.weights[at(b, h, i, j)];
          push(sum);
        }
      }),
    /** @param {any} wanted @returns {any} values, and the weight that each key must have */
    topK: ({ topK, heads }) =>
      collect(heads, [seqlenQ, topK], (b, h, push) => {
        for (let i = 0; i < seqlenQ; i++) {
          const keys = ranked(b, h, i);
          for (let n = 0; n < topK; n++) push(n < keys.length ? scores.weights[at(b, h, i, keys[n])] : 0);
        }
      }),
    /** @param {any} wanted */
    counts: ({ heads }) =>
      collect(heads, [seqlenQ], (b, h, push) => {
        for (let i = 0; i < seqlenQ; i++) push(ranked(b, h, i).length);
      }),
    /** @param {any} wanted */
    stats: ({ heads }) => ({
      entropy: collect(heads, [seqlenQ], (b, h, push) => {
        for (let i = 0; i < seqlenQ; i++) {
          let sum = 0;
          for (const j of ranked(b, h, i)) {
            const p = scores.weights[at(b, h, i, j)];
            if (p > 0) sum -= p * Math.log(p);
          }
          push(sum);
        }
      }),
      maxWeight: collect(heads, [seqlenQ], (b, h, push) => {
        for (let i = 0; i < seqlenQ; i++) {
          const [first] = ranked(b, h, i);
          push(first === undefined ? 0 : scores.weights[at(b, h, i, first)]);
        }
      }),
    }),
    /** @param {any} wanted */
    pool: ({ pool: { rows, columns, kind = 'mean' }, heads }) =>
      collect(heads, [rows, columns], (b, h, push) => {
        for (let r = 0; r < rows; r++) {
          for (let c = 0; c < columns; c++) {
            let [sum, most, pairs] = [0, 0, 0];
            for (let i = Math.floor((r * seqlenQ) / rows); i < Math.floor(((r + 1) * seqlenQ) / rows); i++) {
              for (let j = Math.floor((c * seqlenKv) / columns); j < Math.floor(((c + 1) * seqlenKv) / columns); j++) {
                sum += scores.weights[at(b, h, i, j)];
                most = Math.max(most, scores.weights[at(b, h, i, j)]);
                pairs++;
              }
            }
            push(kind === 'max' ? most : sum / pairs);
          }
        }
      }),
    /** The weight of one pair. @param {number} line of (batch, heads, L) @param {readonly number[] | undefined} heads @param {number} j */
    weightAt: (line, heads, j) => {
      const list = all(heads);
      const head = Math.floor(line / seqlenQ);
      return scores.weights[at(Math.floor(head / list.length), list[head % list.length], line % seqlenQ, j)];
    },
  };
}

/** @param {any} query @param {any} key @param {string} [layout] */
function sizesOf(query, key, layout = 'bhld') {
  const full = (/** @type {number[]} */ shape) => {
    if (shape.length === 2) return [1, 1, shape[0], shape[1]];
    const [b, x, y, d] = shape.length === 3 ? [1, ...shape] : shape;
    return layout === 'blhd' ? [b, y, x, d] : [b, x, y, d];
  };
  const [batch, numHeads, seqlenQ] = full(query.shape);
  return [batch, numHeads, seqlenQ, full(key.shape)[2]];
}

/**
 * @param {any} got a tensor
 * @param {{ data: number[], shape: number[] }} want
 * @param {string} name
 */
function near(got, want, name) {
  assert.deepEqual([...got.shape], want.shape, `shape of ${name}`);
  assert.equal(got.dtype, 'float32');
  assert.ok(got.data instanceof Float32Array);
  const error = largestError(got.data, want.data);
  assert.ok(error <= tolerance, `${name} differs by ${error}`);
}

/**
 * Compares every result of a call with the reference.
 * @param {any} got
 * @param {ReturnType<typeof referenceWeights>} reference
 * @param {any} wanted the options that say what was asked for
 */
export function assertWeights(got, reference, wanted) {
  const names = ['rows', 'columns', 'columnSums', 'topK', 'stats', 'pool'].filter((name) => wanted[name]);
  assert.deepEqual(Object.keys(got), names);
  for (const name of /** @type {const} */ (['rows', 'columns', 'columnSums', 'pool'])) {
    if (wanted[name]) near(got[name], reference[name](wanted), name);
  }
  if (wanted.topK) {
    const { values, indices } = got.topK;
    near(values, reference.topK(wanted), 'topK.values');
    assert.deepEqual(indices.shape, values.shape);
    assertKeys(indices, values, reference, wanted, wanted.topK);
  }
  if (wanted.stats) {
    const { entropy, maxWeight, maxIndex } = got.stats;
    const want = reference.stats(wanted);
    near(entropy, want.entropy, 'entropy');
    near(maxWeight, want.maxWeight, 'maxWeight');
    assert.deepEqual(maxIndex.shape, maxWeight.shape);
    assertKeys(maxIndex, maxWeight, reference, wanted, 1);
  }
}

/**
 * Of each row as many different keys as it sees, at most k, in order, each with the weight that stands beside it.
 * @param {any} indices
 * @param {any} values
 * @param {ReturnType<typeof referenceWeights>} reference
 * @param {any} wanted
 * @param {number} k
 */
function assertKeys(indices, values, reference, wanted, k) {
  assert.equal(indices.dtype, 'int32');
  assert.ok(indices.data instanceof Int32Array);
  const counts = reference.counts(wanted).data;
  counts.forEach((count, line) => {
    const keys = [...indices.data.subarray(line * k, (line + 1) * k)];
    const found = keys.filter((j) => j >= 0);
    assert.equal(found.length, Math.min(k, count), `row ${line}`);
    assert.deepEqual(keys, [...found, ...Array(k - found.length).fill(-1)]);
    assert.equal(new Set(found).size, found.length);
    found.forEach((j, n) => {
      const value = values.data[line * k + n];
      assert.ok(Math.abs(reference.weightAt(line, wanted.heads, j) - value) <= tolerance, `row ${line}, key ${j}`);
      if (n === 0) return;
      const before = values.data[line * k + n - 1];
      assert.ok(before > value || (before === value && found[n - 1] < j), `row ${line} is not in order`);
    });
  });
}
