// The sizes of an attention layer, and where in its tensors each projection lies.

import { rangeError, show } from '../errors.js';
import { readOperand } from '../operand.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./weight-names.js').Found} Found
 */

/**
 * y = x·W + b of one projection, x (inputs), y (outputs). Its weight begins at element `at` of a tensor: as W in rows, or, where
 * `transposed`, as Wᵀ, with `stride` elements from one row to the next; its bias at `biasAt` of another.
 * @typedef {object} Part
 * @property {string} weight name of the tensor
 * @property {number} at
 * @property {number} stride
 * @property {boolean} transposed
 * @property {string | undefined} bias name of the tensor
 * @property {number} biasAt
 * @property {number} inputs
 * @property {number} outputs
 */

/**
 * @typedef {object} LayerSizes
 * @property {number} numHeads Hq
 * @property {number} numKvHeads Hkv
 * @property {number} headDim D
 * @property {number} headDimV Dv
 */

/**
 * @typedef {object} LayerParts
 * @property {LayerSizes} sizes
 * @property {{ query: Part, key: Part, value: Part, out: Part }} parts
 * @property {Map<string, Operand>} operands every tensor of the layer, by name
 */

/** What a weight's two dimensions are. @typedef {{ inputs: number, outputs: number, stride: number, transposed: boolean }} Plane */

/**
 * Reads the tensors of a layer, each property once, and their shapes against the numbers of heads.
 * @param {Runtime} runtime
 * @param {Found} found
 * @param {(name: string) => unknown} tensorOf
 * @param {number} numHeads
 * @param {number | undefined} numKvHeads as the caller says; out of the shapes where absent
 * @returns {LayerParts}
 */
export function readParts(runtime, { layout, names }, tensorOf, numHeads, numKvHeads) {
  /** @type {Map<string, Operand>} */
  const operands = new Map();
  for (const { weight, bias } of Object.values(names)) {
    for (const name of [weight, bias]) {
      if (name === undefined || operands.has(name)) continue;
      operands.set(name, readOperand(`weights['${name}']`, tensorOf(name), false, runtime));
    }
  }
  const plane = (/** @type {string} */ name, /** @type {boolean} */ ofOut) =>
    readPlane(name, shapeOf(operands, name), layout.order === 'out-in', ofOut);
  const out = plane(names.out.weight, true);
  const { sizes, planes } = layout.fused
    ? cutFused(names.query.weight, plane(names.query.weight, false), numHeads, numKvHeads ?? numHeads)
    : separate(
        names,
        [plane(names.query.weight, false), plane(names.key.weight, false), plane(names.value.weight, false)],
        numHeads,
        numKvHeads,
      );
  if (!layout.fused) checkHeads(names, operands, sizes);
  const { headDimV } = sizes;
  if (out.inputs !== numHeads * headDimV) {
    throw rangeError(
      'shape',
      `weights['${names.out.weight}'] takes ${out.inputs} numbers but ${numHeads} heads of ${headDimV} give ${numHeads * headDimV} ` +
        `(its shape is ${show(shapeOf(operands, names.out.weight))})`,
    );
  }
  const [query, key, value] = planes;
  const biasStarts = [0, query.outputs, query.outputs + key.outputs];
  const sharedBias = names.query.bias !== undefined && names.query.bias === names.key.bias;
  const part = (/** @type {'query' | 'key' | 'value'} */ role, /** @type {number} */ n) => ({
    ...planes[n],
    ...names[role],
    biasAt: sharedBias ? biasStarts[n] : 0,
  });
  const parts = {
    query: part('query', 0),
    key: part('key', 1),
    value: part('value', 2),
    out: { ...out, at: 0, ...names.out, biasAt: 0 },
  };
  if (sharedBias) checkBias(operands, names.query.bias, biasStarts[2] + value.outputs);
  else for (const p of [parts.query, parts.key, parts.value]) checkBias(operands, p.bias, p.outputs);
  checkBias(operands, parts.out.bias, parts.out.outputs);
  return { sizes, parts, operands };
}

/** @param {ReadonlyMap<string, Operand>} operands @param {string} name @returns {number[]} */
const shapeOf = (operands, name) => /** @type {Operand} */ (operands.get(name)).shape;

/**
 * The dimensions of a weight; the three of Keras's, (inputs, heads, size) or (heads, size, outputs), as two.
 * @param {string} name
 * @param {number[]} shape
 * @param {boolean} transposed whether outputs come first
 * @param {boolean} ofOut whether it is the output projection
 * @returns {Plane}
 */
function readPlane(name, shape, transposed, ofOut) {
  const three = !transposed && shape.length === 3;
  if (shape.length !== 2 && !three) {
    const wanted = transposed ? '(outputs, inputs)' : '(inputs, outputs) or three with heads';
    throw rangeError('shape', `weights['${name}'] must have dimensions ${wanted}, got shape ${show(shape)}`);
  }
  const [first, second] = three ? (ofOut ? [shape[0] * shape[1], shape[2]] : [shape[0], shape[1] * shape[2]]) : shape;
  if (first === 0 || second === 0)
    throw rangeError('shape', `weights['${name}'] is empty: its shape is ${show(shape)}`);
  return transposed
    ? { outputs: first, inputs: second, stride: second, transposed }
    : { inputs: first, outputs: second, stride: second, transposed };
}

/**
 * @param {string} name
 * @param {Plane} plane of query, key and value, one behind the other
 * @param {number} numHeads
 * @param {number} numKvHeads
 */
function cutFused(name, { inputs, outputs, stride, transposed }, numHeads, numKvHeads) {
  checkGroups(numHeads, numKvHeads);
  const all = numHeads + 2 * numKvHeads;
  const headDim = outputs / all;
  if (!Number.isInteger(headDim)) {
    const heads = `${numHeads} query, ${numKvHeads} key and ${numKvHeads} value heads`;
    throw rangeError('shape', `weights['${name}'] gives ${outputs} numbers, which ${heads} do not share evenly`);
  }
  let begin = 0;
  const planes = [numHeads, numKvHeads, numKvHeads].map((heads) => {
    const at = transposed ? begin * stride : begin;
    begin += heads * headDim;
    return { inputs, outputs: heads * headDim, stride, transposed, at };
  });
  return { sizes: { numHeads, numKvHeads, headDim, headDimV: headDim }, planes };
}

/**
 * @param {Found['names']} names
 * @param {[Plane, Plane, Plane]} planes
 * @param {number} numHeads
 * @param {number | undefined} given
 */
function separate(names, [query, key, value], numHeads, given) {
  const headDim = perHead(names.query.weight, query.outputs, numHeads, 'query heads');
  const inferred = key.outputs / headDim;
  const numKvHeads = given ?? inferred;
  if (numKvHeads !== inferred || !Number.isInteger(inferred)) {
    const want = given === undefined ? `a multiple of the head size ${headDim}` : `${given} key heads of ${headDim}`;
    throw rangeError('shape', `weights['${names.key.weight}'] gives ${key.outputs} numbers, not ${want}`);
  }
  checkGroups(numHeads, numKvHeads);
  const headDimV = perHead(names.value.weight, value.outputs, numKvHeads, 'value heads');
  const sizes = { numHeads, numKvHeads, headDim, headDimV };
  return { sizes, planes: [query, key, value].map((plane) => ({ ...plane, at: 0 })) };
}

/**
 * @param {string} name
 * @param {number} outputs
 * @param {number} heads
 * @param {string} what
 */
function perHead(name, outputs, heads, what) {
  if (outputs % heads === 0) return outputs / heads;
  throw rangeError('shape', `weights['${name}'] gives ${outputs} numbers, which ${heads} ${what} do not share evenly`);
}

/** @param {number} numHeads @param {number} numKvHeads */
function checkGroups(numHeads, numKvHeads) {
  if (numHeads % numKvHeads === 0) return;
  throw rangeError(
    'shape',
    `numHeads is ${numHeads}, which is not a multiple of the ${numKvHeads} heads of key and value`,
  );
}

/**
 * The heads that Keras's shapes name.
 * @param {Found['names']} names
 * @param {ReadonlyMap<string, Operand>} operands
 * @param {LayerSizes} sizes
 */
function checkHeads(names, operands, { numHeads, numKvHeads }) {
  for (const role of /** @type {const} */ (['query', 'key', 'value', 'out'])) {
    const { weight } = names[role];
    const shape = shapeOf(operands, weight);
    if (shape.length !== 3) continue;
    const got = shape[role === 'out' ? 0 : 1];
    const want = role === 'query' || role === 'out' ? numHeads : numKvHeads;
    if (got !== want) {
      throw rangeError(
        'shape',
        `weights['${weight}'] has ${got} heads but ${want} are wanted (its shape is ${show(shape)})`,
      );
    }
  }
}

/**
 * @param {ReadonlyMap<string, Operand>} operands
 * @param {string | undefined} name
 * @param {number} count
 */
function checkBias(operands, name, count) {
  if (name === undefined) return;
  const operand = /** @type {Operand} */ (operands.get(name));
  if (operand.count === count) return;
  throw rangeError('shape', `weights['${name}'] has shape ${show(operand.shape)} but ${count} numbers are wanted`);
}
