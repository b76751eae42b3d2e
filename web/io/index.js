// `sdpa/io`: bytes of .npy, .npz and .safetensors files to tensors and back. No file access, so it runs in browsers as it does in Node.

export { readNpy, writeNpy } from './npy.js';
export { readNpz, writeNpz } from './npz.js';
export { readSafetensors, writeSafetensors } from './safetensors.js';

/** @typedef {import('./tensors.js').FileDtype} FileDtype */
/** @typedef {import('./tensors.js').FileTensor} FileTensor */
/** @typedef {import('./tensors.js').WritableTensor} WritableTensor */
