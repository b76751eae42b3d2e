// The errors of sdpa/io, in one place: each is an AttentionError of the code that fits, and its message starts with what was being read.

import { rangeError, typeError } from '../errors.js';

/** Messages show names and values of the file, which can be of any length. */
const kLongest = 600;

/** @param {string} message @returns {string} with its middle left out where it is long */
const shorten = (message) =>
  message.length <= kLongest ? message : `${message.slice(0, kLongest / 2)} … ${message.slice(-kLongest / 2)}`;

/**
 * The bytes or the tensor are not what the format or the options allow.
 * @param {string} message
 * @returns {never}
 */
export function failShape(message) {
  throw rangeError('shape', shorten(message));
}

/**
 * The bytes do not follow the file format, or an option has a value outside its range.
 * @param {string} message
 * @returns {never}
 */
export function failOption(message) {
  throw rangeError('option', shorten(message));
}

/**
 * @param {string} message
 * @returns {never}
 */
export function failType(message) {
  throw typeError('type', shorten(message));
}

/**
 * The file is well formed and uses something that no tensor here can hold.
 * @param {string} message
 * @returns {never}
 */
export function failUnsupported(message) {
  throw rangeError('unsupported', shorten(message));
}

/**
 * @param {string} message
 * @param {number} needed bytes
 * @returns {never}
 */
export function failMemory(message, needed) {
  throw rangeError('out-of-memory', shorten(message), { needed });
}

/**
 * @param {string} name
 * @param {readonly string[]} known
 * @param {string} what the function's name
 * @returns {never}
 */
export function failUnknownOption(name, known, what) {
  throw typeError('unknown-option', `${what} has no option '${name}'; it takes ${known.join(', ') || 'none'}`);
}
