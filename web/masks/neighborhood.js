// Neighbourhood attention (Hassani et al. 2023, dilated: Hassani and Shi 2022) of sequences, images and volumes, with the rule at the
// borders of its authors' NATTEN: a window that would leave the axis is moved back inside, so that every token sees as many.

import { rangeError, show } from '../errors.js';
import { readNamed } from '../named-options.js';
import { flag } from '../option-values.js';
import { mostCells, wholeNumber } from './arguments.js';
import { spaced } from './span-lists.js';
import { fromSpans } from './spans.js';

/** One number for every axis, or one for each. @typedef {number | readonly number[]} PerAxis */

/**
 * Options of neighborhood().
 * @typedef {object} NeighborhoodOptions
 * @property {PerAxis} kernelSize k, tokens that a token sees along an axis, itself included
 * @property {PerAxis} [dilation] d, from one of them to the next; 1 where absent. k·d must not be more than the axis is long
 * @property {boolean | readonly boolean[]} [causal] along an axis: the token and the k - 1 before it, fewer at the beginning
 */

/** @typedef {{ length: number, kernel: number, dilation: number, isCausal: boolean }} Axis */

/**
 * Along each axis the tokens whose index has the same rest by d are a group. The m-th of a group of n sees those numbered s ...
 * s + k - 1, with s = m - floor(k / 2), but at least 0 and at most n - k; with `causal` those numbered m - k + 1 ... m that there are. A
 * token sees those that it sees along every axis. Tokens go by rows: (y, x) is y·width + x.
 * @param {number | readonly number[]} size of a sequence, or [height, width], or [depth, height, width], in tokens
 * @param {NeighborhoodOptions} options
 * @returns {import('./block-mask.js').BlockMask}
 * @throws TypeError or RangeError with a `code`
 */
export function neighborhood(size, options) {
  const axes = readAxes(size, options);
  const tokens = axes.reduce((product, { length }) => product * length, 1);
  const rows = wholeNumber('neighborhood size: its tokens', tokens, 1, mostCells);
  const seen = axes.map((axis) => Array.from({ length: axis.length }, (_, i) => seenAlong(axis, i)));
  const last = axes.length - 1;
  const lines = Math.floor(rows / axes[last].length);
  /** Where the lines begin that the line at hand sees. @type {number[]} */
  let starts = [];
  return fromSpans({ rows, columns: rows, batch: 1, heads: 1 }, (spans, i) => {
    const x = i % axes[last].length;
    if (x === 0) starts = startsOf(axes, seen, Math.floor(i / axes[last].length), lines);
    const along = seen[last][x];
    for (const start of starts) {
      for (let k = 0; k < along.length; k += 2) spans.add(start + along[k], start + along[k + 1]);
    }
  });
}

/**
 * @param {Axis[]} axes
 * @param {number[][][]} seen by axis and index
 * @param {number} line number of a line along the last axis, of `lines`
 * @param {number} lines
 * @returns {number[]} ascending
 */
function startsOf(axes, seen, line, lines) {
  let starts = [0];
  let left = line;
  let inner = lines;
  for (const [n, { length }] of axes.slice(0, -1).entries()) {
    inner /= length;
    const spans = seen[n][Math.floor(left / inner)];
    left %= inner;
    /** @type {number[]} */
    const next = [];
    for (const start of starts) {
      for (let k = 0; k < spans.length; k += 2) {
        for (let at = spans[k]; at < spans[k + 1]; at++) next.push(start + at * inner);
      }
    }
    starts = next;
  }
  return starts.map((start) => start * axes[axes.length - 1].length);
}

/**
 * What the token at index i sees along an axis.
 * @param {Axis} axis
 * @param {number} i
 * @returns {number[]} spans in ascending order: from, to, from, to, …
 */
function seenAlong({ length, kernel, dilation, isCausal }, i) {
  const rest = i % dilation;
  const m = Math.floor(i / dilation);
  const n = Math.ceil((length - rest) / dilation);
  const first = isCausal ? Math.max(m - kernel + 1, 0) : Math.min(Math.max(m - Math.floor(kernel / 2), 0), n - kernel);
  const end = isCausal ? m + 1 : first + kernel;
  return spaced(rest + first * dilation, end - first, dilation);
}

/**
 * @param {any} size
 * @param {unknown} options
 * @returns {Axis[]}
 */
function readAxes(size, options) {
  const lengths = Array.isArray(size) ? [...size] : [size];
  if (lengths.length < 1 || lengths.length > 3) {
    throw rangeError('option', `neighborhood size must be a number or have 1, 2 or 3 axes, got ${show(lengths)}`);
  }
  const given = readNamed('neighborhood', options, ['kernelSize', 'dilation', 'causal']);
  const { length: count } = lengths;
  const kernels = perAxis('kernelSize', given.kernelSize, count);
  const dilations = perAxis('dilation', given.dilation ?? 1, count);
  const causal = perAxis('causal', given.causal ?? false, count);
  return lengths.map((_, n) => {
    const length = wholeNumber('neighborhood size', lengths[n], 1, mostCells);
    const kernel = wholeNumber('neighborhood kernelSize', kernels[n], 1, mostCells);
    const dilation = wholeNumber('neighborhood dilation', dilations[n], 1, mostCells);
    if (kernel * dilation > length) {
      const product = `${kernel} x ${dilation} = ${kernel * dilation}`;
      throw rangeError('option', `neighborhood kernelSize x dilation is ${product} but the axis has ${length} tokens`);
    }
    return { length, kernel, dilation, isCausal: flag('neighborhood causal', causal[n]) };
  });
}

/**
 * @param {string} name
 * @param {any} given
 * @param {number} count
 * @returns {any[]}
 */
function perAxis(name, given, count) {
  if (!Array.isArray(given)) return Array.from({ length: count }, () => given);
  const list = [...given];
  if (list.length === count) return list;
  const axes = `one for all axes or one for each of ${count}`;
  throw rangeError('option', `neighborhood ${name} must be ${axes}, got ${show(list)}`);
}
