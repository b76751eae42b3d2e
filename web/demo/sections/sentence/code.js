// The lines of this section.

/** @param {{ queries: number, keys: number, size: number, causal: boolean, query: number }} setting */
export const codeFor = ({ queries, keys, size, causal, query }) => `
import { load } from 'sdpa';

const sdpa = await load();
const draw = (tokens) => ({ data: Float32Array.from({ length: tokens * ${size} }, () => Math.random() - 0.5), shape: [tokens, ${size}] });
const [query, key] = [draw(${queries}), draw(${keys})]; // or of a file: readSafetensors(), readNpy(), readNpz() of 'sdpa/io'
const options = ${causal ? "{ causal: true, align: 'lower-right' }" : '{}'};
const { rows, topK } = sdpa.attentionWeights(query, key, { ...options, rows: [${query}], topK: 3 });
console.log(rows.data); // the weights of query ${query}, one for each key
console.log(topK.indices.data.subarray(${3 * query}, ${3 * query + 3})); // the three keys that it looks at most`;
