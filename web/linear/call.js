// A call of linear attention as the module takes it, whatever function it came from.

import { rangeError, show } from '../errors.js';
import { flag } from '../option-values.js';
import { shapeOf } from '../row-shape.js';
import { product } from '../tensor.js';
import { checkMultiple } from '../validate.js';
import { readExact, readRows, same } from './shapes.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../row-shape.js').Rows} Rows
 */

/** Everything of one call, checked. */
export class LinearCall {
  /**
   * @param {string} name of the function, for errors
   * @param {boolean} blhd
   */
  constructor(name, blhd) {
    this.name = name;
    this.blhd = blhd;
    /** What the caller's function calls query, key and value. */
    this.names = { query: 'query', key: 'key', value: 'value' };
    this.rank = 4;
    this.batch = 1;
    /** Of query. */
    this.heads = 1;
    this.keyHeads = 1;
    /** Of value: each has a state. */
    this.states = 1;
    this.seqlenQ = 0;
    this.seqlenKv = 0;
    this.headDim = 0;
    this.headDimV = 0;
    /** @type {Record<'query' | 'key' | 'value', Operand>} */
    this.inputs = /** @type {any} */ ({});
    /** @type {Operand | null} */
    this.decay = null;
    this.decayColumns = 0;
    /** @type {Operand | null} */
    this.beta = null;
    this.betaHeads = 0;
    /** @type {Operand | null} */
    this.step = null;
    /** @type {Float32Array | null} */
    this.rate = null;
    /** @type {Float32Array | null} */
    this.skip = null;
    /** @type {Uint8Array | null} */
    this.keyMask = null;
    /** @type {Operand | null} */
    this.state = null;
    this.returnState = false;
    this.causal = true;
    this.normalised = false;
    this.scale = 1;
    this.epsilon = 0;
    /** Tokens that are brought in at a time; 0: as many as suit. */
    this.chunk = 0;
  }

  /** Columns of a state. */
  get columns() {
    return this.headDimV + (this.normalised ? 1 : 0);
  }

  get stateShape() {
    return [this.batch, this.states, this.headDim, this.columns].slice(4 - this.rank);
  }

  /** @returns {Rows} of the result */
  get outRows() {
    const { batch, heads, states, seqlenQ, headDimV } = this;
    return { batch, heads: Math.max(heads, states), length: seqlenQ, size: headDimV };
  }

  get outShape() {
    return shapeOf(this.outRows, this.rank, this.blhd);
  }

  /** Operands by the names of messages, without those that are absent. @returns {[string, Operand][]} */
  get operands() {
    const { inputs, decay, beta, step, state } = this;
    return /** @type {[string, Operand][]} */ (
      Object.entries({ ...inputs, decay, beta, step, state }).filter(([, operand]) => operand)
    );
  }
}

/**
 * query, key and value with their sizes.
 * @param {Runtime} runtime
 * @param {LinearCall} call
 * @param {Record<'query' | 'key' | 'value', unknown>} given
 */
export function readInputs(runtime, call, given) {
  const { blhd, names } = call;
  const [q, k, v] = [names.query, names.key, names.value];
  const query = readRows(runtime, q, given.query, blhd, null);
  const like = { name: q, rank: query.operand.rank };
  const key = readRows(runtime, k, given.key, blhd, like);
  const value = readRows(runtime, v, given.value, blhd, like);
  call.rank = like.rank;
  call.inputs = { query: query.operand, key: key.operand, value: value.operand };
  call.batch = query.batch;
  call.heads = query.heads;
  call.keyHeads = key.heads;
  call.states = value.heads;
  call.seqlenQ = query.length;
  call.seqlenKv = key.length;
  call.headDim = query.size;
  call.headDimV = value.size;
  same(k, 'batch', key.batch, q, query.batch);
  same(v, 'batch', value.batch, q, query.batch);
  same(k, 'head size', key.size, q, query.size);
  same(v, 'length', value.length, k, key.length);
  if (call.causal) same(q, 'length', query.length, k, key.length);
  if (query.size === 0)
    throw rangeError('shape', `${q} head size must be 1 or more, got shape ${show(call.inputs.query.shape)}`);
  if (value.size === 0)
    throw rangeError('shape', `${v} head size must be 1 or more, got shape ${show(call.inputs.value.shape)}`);
}

/**
 * Several query heads read the state of one key and value head.
 * @param {LinearCall} call
 */
export function checkGroups({ heads, keyHeads, states }) {
  same('value', 'number of heads', states, 'key', keyHeads);
  checkMultiple('query', heads, states, 'heads of key and value');
}

/**
 * @param {Runtime} runtime
 * @param {LinearCall} call with all sizes
 * @param {{ state?: unknown, returnState?: unknown }} options
 */
export function readStates(runtime, call, { state, returnState }) {
  if (returnState !== undefined) call.returnState = flag('returnState', returnState);
  product(`${call.name}'s state`, call.stateShape);
  if (state !== undefined) call.state = readExact(runtime, 'state', state, call.stateShape);
}
