// The lines of this section.

/** @param {{ tokens: number, size: number, causal: boolean, kind: string, row: number, column: number }} setting */
export const codeFor = ({ tokens, size, causal, kind, row, column }) => `
import { load } from 'sdpa';

const sdpa = await load({ threads: 'auto' });
const draw = () => ({ data: Float32Array.from({ length: ${tokens} * ${size} }, () => Math.random() - 0.5), shape: [${tokens}, ${size}] });
const [query, key] = [draw(), draw()]; // or tensors of a file, by readSafetensors() of 'sdpa/io'
const pool = { rows: ${Math.min(128, tokens)}, columns: ${Math.min(128, tokens)}, kind: '${kind}' };
const map = await sdpa.attentionWeightsAsync(query, key, { causal: ${causal}, pool, columnSums: true });
const { rows } = sdpa.attentionWeights(query, key, { causal: ${causal}, rows: [${row}] }); // one row of ${tokens} weights
console.log(map.pool.shape, map.columnSums.shape, rows.data[${column}]);
sdpa.dispose();`;
