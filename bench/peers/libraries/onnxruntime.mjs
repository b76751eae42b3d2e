/** onnxruntime, as WebAssembly and native, which have one interface. */

import { causalBias, repeatHeads, swapHeadsAndRows } from '../inputs.mjs';
import { attentionModel, composedModel, groupQueryAttentionModel, multiHeadAttentionModel } from '../onnx-models.mjs';

/** @typedef {import('../../js/cases.mjs').Case} Case */
/** @typedef {import('../inputs.mjs').Inputs} Inputs */

/** @typedef {'attention-23' | 'attention-24' | 'mha' | 'mha-by-head' | 'gqa' | 'composed'} Way operators of onnx-models.mjs */

/** @type {Way[]} */
export const WAYS = ['attention-23', 'attention-24', 'mha', 'mha-by-head', 'gqa', 'composed'];

/** Lowest float32: what exporters add to the scores of excluded keys. */
const LOWEST = -3.4028234663852886e38;

/**
 * @param {Way} way
 * @param {Case} c
 * @returns {boolean} GroupQueryAttention is always causal, which is no restriction for a single, last row
 */
export const offers = (way, { option, seqlenQ }) => way !== 'gqa' || option === 'causal' || seqlenQ === 1;

/**
 * A session with its inputs as JavaScript arrays, in the layout that the operator asks for.
 * @param {any} ort the library
 * @param {object} sessionOptions
 * @param {Way} way
 * @param {Case} c
 * @param {Inputs} inputs
 * @returns {Promise<import('../contestants.mjs').Task>}
 */
export async function prepareOnnxruntime(ort, sessionOptions, way, c, inputs) {
  const { batch, numHeads, seqlenQ, headDim } = c;
  /** @param {Float32Array} data @param {number[]} shape */
  const tensor = (data, shape) => new ort.Tensor('float32', data, shape);
  const { model, feeds, rowsFirst } = MAKERS[way](ort, tensor, c, inputs);
  const session = await ort.InferenceSession.create(model, {
    graphOptimizationLevel: 'all',
    logSeverityLevel: 4,
    ...sessionOptions,
  });
  return {
    // Only this output is fetched where the operator also returns all keys and values.
    run: async () => (await session.run(feeds, ['out'])).out,
    result: ({ data }) => (rowsFirst ? swapHeadsAndRows(data, batch, seqlenQ, numHeads, headDim) : data),
  };
}

/**
 * @typedef {object} Made
 * @property {Uint8Array} model
 * @property {Record<string, any>} feeds
 * @property {boolean} rowsFirst whether the result is (B, L, H, D)
 */

/** @typedef {(ort: any, tensor: (data: Float32Array, shape: number[]) => any, c: Case, inputs: Inputs) => Made} Maker */

/** @type {Record<Way, Maker>} */
const MAKERS = {
  'attention-23': (_, tensor, c, inputs) => ({
    model: attentionModel(c, 23),
    feeds: fourDimensional(tensor, c, inputs),
    rowsFirst: false,
  }),
  'attention-24': (_, tensor, c, inputs) => ({
    model: attentionModel(c, 24),
    feeds: fourDimensional(tensor, c, inputs),
    rowsFirst: false,
  }),
  mha: (_, tensor, c, inputs) => multiHead(tensor, c, inputs, false),
  'mha-by-head': (_, tensor, c, inputs) => multiHead(tensor, c, inputs, true),
  gqa: groupQuery,
  composed: (_, tensor, c, inputs) => ({
    model: composedModel(c),
    feeds: {
      ...fourDimensional(tensor, c, inputs),
      ...(c.option === 'causal' && { mask: tensor(causalBias(c, LOWEST), [c.seqlenQ, c.seqlenKv]) }),
    },
    rowsFirst: false,
  }),
};

/**
 * @param {(data: Float32Array, shape: number[]) => any} tensor
 * @param {Case} c
 * @param {Inputs} inputs
 */
function fourDimensional(tensor, { batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim }, { query, key, value }) {
  const keyShape = [batch, numKvHeads, seqlenKv, headDim];
  return {
    query: tensor(query, [batch, numHeads, seqlenQ, headDim]),
    key: tensor(key, keyShape),
    value: tensor(value, keyShape),
  };
}

/**
 * @param {(data: Float32Array, shape: number[]) => any} tensor
 * @param {Case} c
 * @param {Inputs} inputs
 * @param {boolean} keyByHead
 * @returns {Made}
 */
function multiHead(tensor, c, inputs, keyByHead) {
  const { batch, numHeads, seqlenQ, seqlenKv, headDim } = c;
  const width = numHeads * headDim;
  /** @param {Float32Array} data */
  const keys = (data) => {
    const repeated = repeatHeads(c, data);
    return keyByHead
      ? tensor(repeated, [batch, numHeads, seqlenKv, headDim])
      : tensor(swapHeadsAndRows(repeated, batch, numHeads, seqlenKv, headDim), [batch, seqlenKv, width]);
  };
  const query = swapHeadsAndRows(inputs.query, batch, numHeads, seqlenQ, headDim);
  return {
    model: multiHeadAttentionModel(c, keyByHead),
    feeds: { query: tensor(query, [batch, seqlenQ, width]), key: keys(inputs.key), value: keys(inputs.value) },
    rowsFirst: true,
  };
}

/** @type {Maker} */
function groupQuery(ort, tensor, c, inputs) {
  const { batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim } = c;
  const past = seqlenKv - seqlenQ;
  /** @param {Float32Array} data */
  const split = (data) => {
    const before = new Float32Array(batch * numKvHeads * past * headDim);
    const fresh = new Float32Array(batch * numKvHeads * seqlenQ * headDim);
    for (let head = 0; head < batch * numKvHeads; head++) {
      const start = head * seqlenKv * headDim;
      const middle = start + past * headDim;
      before.set(data.subarray(start, middle), head * past * headDim);
      fresh.set(data.subarray(middle, start + seqlenKv * headDim), head * seqlenQ * headDim);
    }
    return {
      past: tensor(before, [batch, numKvHeads, past, headDim]),
      fresh: tensor(swapHeadsAndRows(fresh, batch, numKvHeads, seqlenQ, headDim), [
        batch,
        seqlenQ,
        numKvHeads * headDim,
      ]),
    };
  };
  const key = split(inputs.key);
  const value = split(inputs.value);
  const query = swapHeadsAndRows(inputs.query, batch, numHeads, seqlenQ, headDim);
  return {
    model: groupQueryAttentionModel(c),
    feeds: {
      query: tensor(query, [batch, seqlenQ, numHeads * headDim]),
      key: key.fresh,
      value: value.fresh,
      ...(past > 0 && { past_key: key.past, past_value: value.past }),
      // The operator counts from 0: the index of the last key.
      seqlens_k: new ort.Tensor('int32', new Int32Array(batch).fill(seqlenKv - 1), [batch]),
      total_sequence_length: new ort.Tensor('int32', Int32Array.of(seqlenKv), [1]),
    },
    rowsFirst: true,
  };
}
