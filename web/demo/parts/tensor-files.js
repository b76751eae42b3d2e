// Files of tensors that a visitor brings: .safetensors, .npy and .npz, read in the page and sent nowhere.

import { readNpy, readNpz, readSafetensors } from 'sdpa/io';

/** @typedef {import('./tensor-store.js').NamedTensor} NamedTensor */

export const fileEndings = ['.safetensors', '.npy', '.npz'];

/**
 * @param {{ readonly name: string, arrayBuffer: () => Promise<ArrayBuffer> }} file
 * @returns {Promise<{ tensors: NamedTensor[], left: string[] }>} `left`: why others of the file are no query and no key
 * @throws an error that names the file
 */
export async function readTensorFile(file) {
  const ending = fileEndings.find((each) => file.name.toLowerCase().endsWith(each));
  if (!ending) throw new Error(`${file.name} is none of the files that are read: ${fileEndings.join(', ')}`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const stem = file.name.slice(0, -ending.length);
  /** @type {NamedTensor[]} */
  const tensors = [];
  /** @type {string[]} */
  const left = [];
  for (const [name, tensor] of Object.entries(readAll(file.name, ending, bytes, stem))) {
    const reason = whyNot(tensor);
    if (reason) left.push(`${name} ${reason}`);
    else tensors.push(usable(name, tensor));
  }
  return { tensors, left };
}

/**
 * @param {string} fileName
 * @param {string} ending
 * @param {Uint8Array} bytes
 * @param {string} stem
 * @returns {Record<string, import('sdpa/io').FileTensor>}
 */
function readAll(fileName, ending, bytes, stem) {
  try {
    if (ending === '.npy') return { [stem]: readNpy(bytes) };
    return ending === '.npz' ? readNpz(bytes) : readSafetensors(bytes);
  } catch (cause) {
    throw new Error(`${fileName}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}

/** @param {import('sdpa/io').FileTensor} tensor */
function whyNot({ shape, dtype }) {
  if (shape.length < 2 || shape.length > 4) return `has ${shape.length} dimensions, but 2 to 4 are shown`;
  if (!/float/.test(dtype)) return `has dtype ${dtype}`;
  return shape.includes(0) ? `is empty: its shape is ${shape.join(' × ')}` : '';
}

/**
 * @param {string} name
 * @param {import('sdpa/io').FileTensor} tensor
 * @returns {NamedTensor}
 */
function usable(name, { data, shape, dtype }) {
  if (dtype === 'float64') return { name, data: Float32Array.from(/** @type {any} */ (data)), shape, dtype: 'float32' };
  return /** @type {any} */ ({ name, data, shape, dtype });
}
