// backward(): gradients of a multi-head layer. What lies between its projections is computed again, attention's weights included, so
// that the forward pass keeps nothing.

import { rangeError, show, typeError } from '../errors.js';
import { computeGradients } from '../gradients/compute.js';
import { refuseResults, withSinks } from '../gradients/read-call.js';
import { presentGradients } from '../gradients/results.js';
import { Operand, readOperand, settle } from '../operand.js';
import { copyOut } from '../output.js';
import { lseShape } from '../validate.js';
import { attend, project, turnRows } from './forward.js';
import { readLayerCall } from './layer-call.js';
import { place } from './packed-weights.js';
import { Scratch } from './scratch.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('./forward.js').Projected} Projected
 * @typedef {import('./layer-call.js').LayerCall} LayerCall
 * @typedef {import('./layer-call.js').LayerState} LayerState
 * @typedef {import('./packed-weights.js').Projection} Projection
 */

/**
 * What the backward pass needs besides the arguments of forward().
 * @typedef {object} LayerGiven
 * @property {import('../tensor.js').TensorLike | import('../tensor.js').SdpaTensor} dOut gradient of the loss with respect to out, in its
 *   shape, float32
 */

/**
 * What a layer's backward() gives: gradients of the loss, float32, each in the shape of what it is the gradient of.
 * @typedef {object} LayerGradients
 * @property {Tensor} dX
 * @property {Tensor | { key: Tensor, value: Tensor }} [dContext] in the form of the context
 * @property {Record<string, Tensor>} dWeights by the names of the weights, in their shapes
 * @property {Tensor} [dBias] of the option bias
 * @property {Tensor} [dSinks]
 * @property {Tensor} [dAlibiSlopes]
 * @property {number} dScale
 */

/**
 * @param {LayerState} layer
 * @param {ReadonlyMap<string, readonly number[]>} shapes of the weights
 * @param {unknown} x
 * @param {unknown} context
 * @param {unknown} given
 * @param {any} options
 * @returns {LayerGradients}
 */
export function backward(layer, shapes, x, context, given, options) {
  const { runtime, weights } = layer;
  const dOut = readOut(runtime, given);
  /** @type {ReturnType<typeof withSinks>['sinks']} */
  let sinks = null;
  const read = readLayerCall(layer, x, context, options, (rest) => {
    const both = withSinks(rest);
    sinks = both.sinks;
    return both.rest;
  });
  const { input, call } = read;
  refuse(read);
  const shape = [...input.lead, input.seqlenQ, weights.out.outputs];
  if (dOut.shape.length !== shape.length || dOut.shape.some((size, i) => size !== shape[i])) {
    throw rangeError('shape', `dOut has shape ${show(dOut.shape)} but must have ${show(shape)}`);
  }
  settle('dOut', dOut, runtime);

  const scratch = new Scratch(runtime);
  try {
    const placed = project(layer, read, scratch);
    const dY = place(runtime, dOut, dOut.pointer ? 0 : scratch.take(shape));
    call.returnLse = true;
    const { lse } = attend(runtime, read, placed.heads);
    const rows = input.batch * input.seqlenQ;
    const dHeads = scratch.take(read.headsShape);
    weights.out.applyTransposed(runtime, dY, rows, dHeads, false);

    const at = (/** @type {number} */ pointer) =>
      new Operand(null, 'float32', read.headsShape, rows * weights.out.inputs, pointer);
    const lses = /** @type {Tensor} */ (lse).data;
    const attention = {
      call,
      sinks,
      out: at(placed.heads),
      lse: new Operand(lses, 'float32', lseShape(call), lses.length, 0),
      dOut: at(dHeads),
      dLse: null,
    };
    const raw = computeGradients(runtime, attention);
    turnBack(layer, read, raw);
    const { dBias, dSinks, dAlibiSlopes, dScale } = presentGradients(attention, raw);

    // The gradients take the places of what they are gradients of.
    const { query, key, value } = read;
    runtime.floats.set(raw.query, query.pointer / 4);
    runtime.floats.set(raw.key, key.pointer / 4);
    runtime.floats.set(raw.value, value.pointer / 4);
    const keyRows = input.batch * input.seqlenKv;
    /** @type {Use[]} */
    const uses = [
      { projection: weights.query, x: placed.x, dy: query.pointer, rows },
      { projection: weights.key, x: placed.keys, dy: key.pointer, rows: keyRows },
      { projection: weights.value, x: placed.values, dy: value.pointer, rows: keyRows },
      { projection: weights.out, x: placed.heads, dy: dY, rows },
    ];
    const dWeights = weightGradients(runtime, shapes, uses);
    const inputs = inputGradients(runtime, read, uses, scratch);
    return {
      ...inputs,
      dWeights,
      ...(dBias && { dBias }),
      ...(dSinks && { dSinks }),
      ...(dAlibiSlopes && { dAlibiSlopes }),
      dScale,
    };
  } finally {
    scratch.release();
  }
}

/**
 * One projection of the call: y = x·W + b of so many rows. Pointers.
 * @typedef {{ projection: Projection, x: number, dy: number, rows: number }} Use
 */

/**
 * @param {Runtime} runtime
 * @param {any} given
 */
function readOut(runtime, given) {
  if (Object.prototype.toString.call(given) !== '[object Object]' || given.dOut === undefined) {
    throw typeError('type', `backward needs an object { dOut }, the gradient of what forward gave; got ${show(given)}`);
  }
  for (const name in given) {
    if (name !== 'dOut')
      throw typeError('unknown-option', `backward knows no '${name}' beside x and context; it takes dOut`);
  }
  const operand = readOperand('dOut', given.dOut, false, runtime);
  if (operand.dtype !== 'float32') throw typeError('type', `dOut must be float32, got ${operand.dtype}`);
  return operand;
}

/** @param {LayerCall} read */
function refuse({ call, use, out }) {
  if (use)
    throw rangeError(
      'option',
      'backward does not take the option cache: it has the gradients of x, not of past tokens',
    );
  if (out !== undefined)
    throw rangeError('option', "backward does not take the option 'out': what it gives are new arrays");
  refuseResults('backward', call);
}

/**
 * Gradients of queries and keys as they were before they were turned.
 * @param {LayerState} layer
 * @param {LayerCall} read
 * @param {import('../gradients/compute.js').RawGradients} raw
 */
function turnBack({ sizes, rope }, { input, places }, raw) {
  if (!rope || !places) return;
  const { headDim, numHeads, numKvHeads } = sizes;
  const { batch, seqlenQ: length } = input;
  turnRows(rope, raw.query, 0, { batch, length, heads: numHeads, headDim }, places, -1);
  turnRows(rope, raw.key, 0, { batch, length, heads: numKvHeads, headDim }, places, -1);
}

/**
 * @param {Runtime} runtime
 * @param {ReadonlyMap<string, readonly number[]>} shapes
 * @param {Use[]} uses
 * @returns {Record<string, Tensor>}
 */
function weightGradients(runtime, shapes, uses) {
  /** @type {Record<string, Tensor>} */
  const gradients = Object.create(null);
  for (const [name, shape] of shapes) {
    const scratch = new Scratch(runtime);
    const count = shape.reduce((all, size) => all * size, 1);
    try {
      const ofBias = uses.some(({ projection }) => projection.part.bias === name);
      if (ofBias) {
        const data = new Float32Array(count);
        for (const { projection, dy, rows } of uses) {
          const { part, outputs } = projection;
          if (part.bias === name) data.set(columnSums(runtime.floats, dy / 4, rows, outputs), part.biasAt);
        }
        gradients[name] = { data, shape: [...shape], dtype: 'float32' };
        continue;
      }
      const tensor = scratch.take(shape);
      for (const { projection, x, dy, rows } of uses) {
        if (projection.part.weight === name) projection.weightGradient(runtime, x, dy, rows, tensor);
      }
      gradients[name] = copyOut(runtime, tensor, count, [...shape]);
    } finally {
      scratch.release();
    }
  }
  return gradients;
}

/**
 * Added in float64, row by row.
 * @param {Float32Array} memory
 * @param {number} begin
 * @param {number} rows
 * @param {number} columns
 */
function columnSums(memory, begin, rows, columns) {
  const sums = new Float64Array(columns);
  for (let r = 0; r < rows; r++) {
    const at = begin + r * columns;
    for (let c = 0; c < columns; c++) sums[c] += memory[at + c];
  }
  return sums;
}

/**
 * dX and dContext: of a tensor that several projections read, the sum of theirs, in their order.
 * @param {Runtime} runtime
 * @param {LayerCall} read
 * @param {Use[]} uses of query, key, value
 * @param {Scratch} scratch
 * @returns {{ dX: Tensor, dContext?: Tensor | { key: Tensor, value: Tensor } }}
 */
function inputGradients(runtime, { input }, [query, key, value], scratch) {
  const gradient = (/** @type {Operand} */ of, /** @type {Use[]} */ uses) => {
    const pointer = scratch.take(of.shape);
    uses.forEach(({ projection, dy, rows }, n) => projection.applyTransposed(runtime, dy, rows, pointer, n > 0));
    return copyOut(runtime, pointer, of.count, [...of.shape]);
  };
  if (input.isSelf) return { dX: gradient(input.query, [query, key, value]) };
  const dX = gradient(input.query, [query]);
  if (!input.isPair) return { dX, dContext: gradient(input.key, [key, value]) };
  return { dX, dContext: { key: gradient(input.key, [key]), value: gradient(input.value, [value]) } };
}
