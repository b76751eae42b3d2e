// The flags of each command, as the parser and the help read them.

import { oneOf, parseCount, parseIntegers, parseNumber, parseWindow } from './arguments.js';
import { parsePool, parseRanges } from './ranges.js';
import { parseAssignment } from './roles.js';
import { outputFormat } from './output-files.js';
import { UsageError } from './usage-error.js';

/** @import { Flag } from './arguments.js' */

/** @type {Flag} */
const help = { name: 'help', help: 'this text' };

/** @type {Flag} */
const variant = {
  name: 'variant',
  value: 'NAME',
  help: 'build to use: auto (default), relaxed, simd, scalar',
  parse: oneOf(['auto', 'relaxed', 'simd', 'scalar']),
};

/**
 * @param {string} text
 * @param {string} flag
 * @returns {string} the path, once its extension is known
 */
function parseOutput(text, flag) {
  outputFormat(text, flag);
  return text;
}

/**
 * @param {string} text
 * @param {string} flag
 * @returns {string} the path
 */
function parsePicture(text, flag) {
  if (!/\.png$/i.test(text)) throw new UsageError(`${flag} ${text}: the name must end in .png`);
  return text;
}

/**
 * @param {string} text
 * @param {string} flag
 * @returns {number | Int32Array}
 */
function parseOffset(text, flag) {
  const integers = parseIntegers(text);
  if (!integers) throw new UsageError(`${flag} must be a whole number, or one per batch entry (3,5), got '${text}'`);
  return integers.length === 1 ? integers[0] : integers;
}

/** What the scores are. @type {readonly Flag[]} */
const scoreFlags = [
  { name: 'mask', value: 'FILE', help: 'booleans, non-zero = attend, broadcast to (B, Hq, L, S)' },
  { name: 'bias', value: 'FILE', help: 'numbers added to the scores, broadcast to (B, Hq, L, S)' },
  { name: 'layout', value: 'NAME', help: 'bhld (default) or blhd: (B, L, H, D)', parse: oneOf(['bhld', 'blhd']) },
  { name: 'scale', value: 'X', help: 'factor of the scores (default 1/sqrt(D))', parse: parseNumber },
  { name: 'softcap', value: 'X', help: 'scores become X tanh(score / X)', parse: parseNumber },
  { name: 'causal', help: 'a query sees no key after its own position' },
  {
    name: 'window',
    value: 'L,R',
    help: 'a query sees L keys before its position and R after; inf = all',
    parse: parseWindow,
  },
  {
    name: 'align',
    value: 'NAME',
    help: 'where query 0 stands: lower-right (L last positions) or upper-left (position 0)',
    parse: oneOf(['lower-right', 'upper-left']),
  },
  {
    name: 'query-offset',
    value: 'N',
    help: 'where query 0 stands, or one number per batch entry: 3,5',
    parse: parseOffset,
  },
  { name: 'query-lengths', value: 'LIST', help: 'queries in use per batch entry: 3,5 or a file' },
  { name: 'kv-lengths', value: 'LIST', help: 'keys in use per batch entry: 3,5 or a file' },
];

/** Other names for tensors of a file. @type {Flag} */
const name = {
  name: 'name',
  value: 'ROLE=NAME',
  multiple: true,
  help: 'name of a tensor in such a file, e.g. query=attn.q',
  parse: parseAssignment,
};

/** @type {readonly Flag[]} */
export const attentionFlags = [
  { name: 'query', value: 'FILE', help: 'query, (B, Hq, L, D), (Hq, L, D) or (L, D)' },
  { name: 'key', value: 'FILE', help: 'key, (B, Hkv, S, D); Hkv divides Hq' },
  { name: 'value', value: 'FILE', help: 'value, (B, Hkv, S, Dv)' },
  { name: 'input', value: 'FILE', help: 'one .safetensors or .npz with query, key, value (or q, k, v), mask, bias' },
  name,
  ...scoreFlags,
  {
    name: 'out',
    value: 'FILE',
    help: 'result, float32: .npy, .npz, .safetensors; - is .npy to the standard output',
    parse: parseOutput,
  },
  {
    name: 'lse',
    value: 'FILE',
    help: "logarithm of each row's sum of exponentials; may be the same .npz or .safetensors",
    parse: parseOutput,
  },
  {
    name: 'scores',
    value: 'STAGE',
    help: 'also the (B, Hq, L, S) matrix: scaled, capped, biased or weights',
    parse: oneOf(['scaled', 'capped', 'biased', 'weights']),
  },
  {
    name: 'scores-out',
    value: 'FILE',
    help: 'where the matrix goes (default: into --out, where that holds several)',
    parse: parseOutput,
  },
  variant,
  {
    name: 'rows-per-slice',
    value: 'N',
    help: "query rows computed at a time (default: about 0.1 s' worth); changes no bit of the result",
    parse: parseCount,
  },
  { name: 'quiet', help: 'nothing on stderr but errors' },
  help,
];

/** @type {readonly Flag[]} */
export const weightsFlags = [
  { name: 'query', value: 'FILE', help: 'query, (B, Hq, L, D), (Hq, L, D) or (L, D); also the first word' },
  { name: 'key', value: 'FILE', help: 'key, (B, Hkv, S, D); Hkv divides Hq; also the second word' },
  { name: 'input', value: 'FILE', help: 'one .safetensors or .npz with query, key (or q, k), mask, bias, lse' },
  name,
  { name: 'lse', value: 'FILE', help: 'what sdpa attention --lse wrote for the same call; computed where absent' },
  {
    name: 'rows',
    value: 'LIST',
    help: 'weights of query rows: 3,5 or 0:16 or 0:512:8, -1 is the last',
    parse: parseRanges,
  },
  { name: 'columns', value: 'LIST', help: 'weights of keys, a LIST likewise', parse: parseRanges },
  { name: 'column-sums', help: 'sum over the rows of the weights of each key' },
  { name: 'top-k', value: 'K', help: 'the K largest weights of each row and their keys', parse: parseCount },
  { name: 'stats', help: 'entropy of each row in nats, its largest weight and the key of that' },
  { name: 'pool', value: 'N', help: 'a map of N x N cells, or ROWSxCOLUMNS: 512x128', parse: parsePool },
  { name: 'pool-kind', value: 'NAME', help: 'mean (default) or max of each cell', parse: oneOf(['mean', 'max']) },
  { name: 'heads', value: 'LIST', help: 'query heads, a LIST likewise (default: all)', parse: parseRanges },
  ...scoreFlags,
  {
    name: 'out',
    value: 'FILE',
    help: 'results: .npz, .safetensors, or .npy for a single array; - is .npy to the standard output',
    parse: parseOutput,
  },
  { name: 'png', value: 'FILE', help: 'picture of the map of --pool, of one head', parse: parsePicture },
  {
    name: 'png-scale',
    value: 'NAME',
    help: 'colours of the picture: linear (default), or log, four decades down from the largest',
    parse: oneOf(['linear', 'log']),
  },
  variant,
  { name: 'quiet', help: 'nothing on stderr but errors' },
  help,
];

/** @type {readonly Flag[]} */
export const infoFlags = [variant, { name: 'json', help: 'as JSON' }, help];
