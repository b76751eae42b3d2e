/**
 * The shapes that the benches time. The same table as bench/native/case_table.hpp, name by name, so that a native and a
 * WebAssembly run can be put side by side; a test compares the two.
 */

/** @typedef {'dense' | 'causal' | 'mask' | 'bias' | 'softcap' | 'window'} Option what a case switches on, one at a time */

/**
 * @typedef {object} Case
 * @property {string} nickname where the shape comes from
 * @property {Option} option
 * @property {number} batch
 * @property {number} numHeads
 * @property {number} numKvHeads
 * @property {number} seqlenQ
 * @property {number} seqlenKv
 * @property {number} headDim of query, key and value
 */

/** Keys to the left of the query's own that option 'window' leaves visible; none to the right. */
export const WINDOW_LEFT = 255;

export const SOFTCAP = 30;

/** Largest absolute error against float64 on unit normal data. */
export const TOLERANCE = 2e-6;

/** @type {readonly Case[]} */
export const CASES = [
  row('bert128', 'dense', 1, 12, 12, 128, 128, 64),
  row('bert512', 'dense', 1, 12, 12, 512, 512, 64),
  row('vit197', 'dense', 1, 12, 12, 197, 197, 64),
  row('swin', 'dense', 64, 3, 3, 49, 49, 32),
  row('sd-d40', 'dense', 1, 8, 8, 256, 256, 40),
  row('gpt2-1024-dense', 'dense', 1, 12, 12, 1024, 1024, 64),
  row('gpt2-1024', 'causal', 1, 12, 12, 1024, 1024, 64),
  row('llama512-dense', 'dense', 1, 32, 8, 512, 512, 128),
  row('llama512', 'causal', 1, 32, 8, 512, 512, 128),
  row('long4k', 'dense', 1, 1, 1, 4096, 4096, 64),
  row('long4k-causal', 'causal', 1, 1, 1, 4096, 4096, 64),
  row('long16k', 'causal', 1, 1, 1, 16384, 16384, 64),
  row('bert512-mask', 'mask', 1, 12, 12, 512, 512, 64),
  row('bert512-bias', 'bias', 1, 12, 12, 512, 512, 64),
  row('bert512-softcap', 'softcap', 1, 12, 12, 512, 512, 64),
  row('gpt2-1024-window', 'window', 1, 12, 12, 1024, 1024, 64),
  row('dec-gpt2', 'dense', 1, 12, 12, 1, 1024, 64),
  row('dec-llama', 'dense', 1, 32, 8, 1, 2048, 128),
  row('dec-gpt2-32k', 'dense', 1, 12, 12, 1, 32768, 64),
];

/** One head of 32 768 causal tokens: the call whose memory is measured. */
export const MEMORY_CASE = row('long32k', 'causal', 1, 1, 1, 32768, 32768, 64);

/** One head of 8192 tokens: the call whose memory is measured with that of its backward pass. */
export const BACKWARD_MEMORY_CASE = row('long8k', 'dense', 1, 1, 1, 8192, 8192, 64);

/** The call that does next to no arithmetic. */
export const SMALLEST_CASE = row('smallest', 'dense', 1, 1, 1, 4, 4, 8);

/** The call that is also timed on plain arrays. */
export const ARRAYS_CASE = CASES[0];

/** Those that are also timed on workers: calls of 10 ms and more, and decoding from a cache that workers share. */
export const WORKER_CASES = CASES.filter(({ nickname }) =>
  ['bert512', 'gpt2-1024', 'llama512', 'long16k', 'dec-gpt2-32k'].includes(nickname),
);

/**
 * @param {string} nickname
 * @param {Option} option
 * @param {number[]} sizes
 * @returns {Case}
 */
function row(nickname, option, ...sizes) {
  const [batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim] = sizes;
  return { nickname, option, batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim };
}

/**
 * @param {Case} c
 * @returns {boolean} whether there is a single query row a head, as when a model writes its text token by token
 */
export const isDecode = ({ seqlenQ }) => seqlenQ === 1;

/**
 * @param {Case} c
 * @returns {string} e.g. `attention/prefill/causal/B:1/H:12/Hkv:12/Sq:1024/Skv:1024/D:64`
 */
export function caseName(c) {
  const shape = `B:${c.batch}/H:${c.numHeads}/Hkv:${c.numKvHeads}/Sq:${c.seqlenQ}/Skv:${c.seqlenKv}/D:${c.headDim}`;
  return `attention/${isDecode(c) ? 'decode' : 'prefill'}/${c.option}/${shape}`;
}

/**
 * Pairs of query and key that count, per head: half of the square when causal, as the field counts it; the cells of the
 * band with a window.
 * @param {Case} c
 */
export function pairs({ option, seqlenQ, seqlenKv }) {
  const all = seqlenQ * seqlenKv;
  if (option === 'causal') return all / 2;
  if (option !== 'window') return all;
  let cells = 0;
  for (let i = 0; i < seqlenQ; i++) cells += Math.min(i + seqlenKv - seqlenQ, WINDOW_LEFT) + 1;
  return cells;
}

/**
 * @param {Case} c
 * @returns {number} multiplications and additions of QKᵀ and PV; exp is not counted
 */
export const flops = (c) => 4 * c.batch * c.numHeads * c.headDim * pairs(c);

/**
 * @param {Case} c
 * @returns {number} bytes of key and value in float32
 */
export const keyValueBytes = ({ batch, numKvHeads, seqlenKv, headDim }) => 8 * batch * numKvHeads * seqlenKv * headDim;

/**
 * @param {Case} c
 * @returns {number} bytes of query, key, value and out in float32, each once: the least that has to move
 */
export const bytes = (c) => 8 * c.batch * c.numHeads * c.seqlenQ * c.headDim + keyValueBytes(c);
