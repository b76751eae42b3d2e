import { attentionFlags, infoFlags, weightsFlags } from './flags.js';

/** @import { Flag } from './arguments.js' */

export const mainHelp = `sdpa: exact attention in linear memory

usage
  sdpa attention --query q.npy --key k.npy --value v.npy --causal --out o.npy
  sdpa attention --input qkv.safetensors --out o.npz --lse o.npz
  sdpa weights q.npy k.npy --causal --heads 0 --pool 512 --png map.png
  sdpa info

commands
  attention    softmax(scale QK^T)V on .npy, .npz and .safetensors files
  weights      parts and summaries of softmax(scale QK^T), and pictures
  info         version, engine, builds, memory

options
  --help       this text, or a command's own after its name
  --version    the version
`;

const attentionIntro = `sdpa attention: out = softmax(mask(softcap(scale Q K^T) + bias)) V, on files

usage
  sdpa attention --query q.npy --key k.npy --value v.npy [options] --out o.npy
  sdpa attention --input qkv.safetensors [options] --out o.safetensors

Inputs are .npy, .npz or .safetensors; float32, float16 and bfloat16 are taken as they are, float64 becomes float32.
B batch, Hq and Hkv heads, L queries, S keys, D and Dv head sizes. Exit code 2: bad input; 1: failure; 0: done.
`;

const weightsIntro = `sdpa weights: parts and summaries of P = softmax(mask(softcap(scale Q K^T) + bias)), on files, without the matrix

usage
  sdpa weights q.npy k.npy [options] --rows 0:16 --out w.npy
  sdpa weights q.npy k.npy [options] --stats --top-k 8 --out w.npz
  sdpa weights q.npy k.npy [options] --heads 0 --pool 512 --png map.png

Arrays in a .npz or .safetensors file: rows (B, heads, rows, S), columns (B, heads, L, columns),
column_sums (B, heads, S), topk_values and topk_indices (B, heads, L, K), entropy, max_weight and max_index
(B, heads, L), pool (B, heads, N, N).
Exit code 2: bad input; 1: failure; 0: done.
`;

const infoIntro = `sdpa info: version, engine features, builds, memory

usage
  sdpa info [options]
`;

export const attentionHelp = () => `${attentionIntro}\noptions\n${list(attentionFlags)}`;

export const weightsHelp = () => `${weightsIntro}\noptions\n${list(weightsFlags)}`;

export const infoHelp = () => `${infoIntro}\noptions\n${list(infoFlags)}`;

/**
 * @param {readonly Flag[]} flags
 * @returns {string}
 */
function list(flags) {
  const left = flags.map(({ name, value }) => `  --${name}${value ? ` ${value}` : ''}`);
  const width = Math.max(...left.map((text) => text.length)) + 2;
  return flags.map(({ help }, i) => `${left[i].padEnd(width)}${help}\n`).join('');
}
