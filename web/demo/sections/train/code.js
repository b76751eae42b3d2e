// The lines of this section.

import { batch, headDim } from './model.js';
import { length } from './tasks.js';

/** @param {number} rate */
export const codeFor = (rate) => `
import { load } from 'sdpa';

const sdpa = await load();
const [shape, rate] = [[${batch}, 1, ${length}, ${headDim}], ${rate}];
const draw = () => ({ data: Float32Array.from({ length: ${batch * length * headDim} }, () => Math.random() - 0.5), shape });
const [query, key, value, wanted] = [draw(), draw(), draw(), draw()];
const { out, lse } = sdpa.attention(query, key, value, { causal: true, returnLse: true });
const dOut = { data: out.data.map((number, i) => number - wanted.data[i]), shape }; // of half the squared distance
const { dQuery } = sdpa.attentionBackward(query, key, value, { out, lse, dOut }, { causal: true });
dQuery.data.forEach((slope, i) => (query.data[i] -= rate * slope)); // and so on for key and value
console.log(dOut.data.reduce((sum, number) => sum + number ** 2 / 2, 0)); // the loss`;
