// Tensors by name that sections share: from files of the visitor's, and from the head that is trained in the page.

/**
 * @typedef {object} NamedTensor
 * @property {string} name
 * @property {Float32Array | Uint16Array} data
 * @property {readonly number[]} shape 2, 3 or 4 sizes
 * @property {'float32' | 'float16' | 'bfloat16'} dtype
 * @property {readonly string[]} [labels] words of its tokens
 */

/** @type {Map<string, NamedTensor>} */
const tensors = new Map();
/** @type {(() => void)[]} */
const listeners = [];

/** @returns {NamedTensor[]} in the order in which they came */
export const allTensors = () => [...tensors.values()];

/** @param {string} name */
export const tensorNamed = (name) => tensors.get(name);

/** @param {readonly NamedTensor[]} added take the place of those of the same name */
export function addTensors(added) {
  for (const tensor of added) tensors.set(tensor.name, tensor);
  for (const action of listeners) action();
}

/** @param {() => void} action called whenever there are others */
export const onTensors = (action) => void listeners.push(action);
