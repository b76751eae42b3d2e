// Readers of single options: type and range, without the tensors' shapes. Each property of a caller's object is read once, and
// numbers are copied, so that what was checked is what the kernel gets.

import { rangeError, show, typeError } from './errors.js';
import { arrayKind } from './tensor.js';

/**
 * @param {string} name
 * @param {unknown} setting
 * @returns {number}
 */
export function finite(name, setting) {
  if (typeof setting !== 'number') throw typeError('type', `${name} must be a number, got ${show(setting)}`);
  if (!Number.isFinite(setting)) throw rangeError('option', `${name} must be finite, got ${setting}`);
  return setting;
}

/**
 * @param {string} name
 * @param {unknown} setting
 * @param {number} least
 * @returns {number} a whole number below 2^53
 */
export function whole(name, setting, least) {
  if (typeof setting !== 'number') throw typeError('type', `${name} must be a number, got ${show(setting)}`);
  if (!Number.isSafeInteger(setting) || setting < least) {
    throw rangeError('option', `${name} must be a whole number, ${least} or more and below 2^53, got ${setting}`);
  }
  return setting;
}

/**
 * The options themselves, wherever the object keeps them, without those of these names.
 * @param {object} options
 * @param {readonly string[]} names
 * @returns {any}
 */
export function without(options, names) {
  const hidden = { value: undefined, enumerable: false };
  return Object.create(options, Object.fromEntries(names.map((name) => [name, hidden])));
}

/**
 * @param {string} name
 * @param {unknown} setting
 * @returns {boolean}
 */
export function flag(name, setting) {
  if (typeof setting !== 'boolean') throw typeError('type', `${name} must be true or false, got ${show(setting)}`);
  return setting;
}

/**
 * @param {string} name
 * @param {unknown} setting
 * @param {Readonly<Record<string, number>>} codes
 * @returns {number}
 */
export function oneOf(name, setting, codes) {
  if (typeof setting === 'string' && Object.hasOwn(codes, setting)) return codes[setting];
  const message = `${name} must be '${Object.keys(codes).join("' or '")}', got ${show(setting)}`;
  throw typeof setting === 'string' ? rangeError('option', message) : typeError('type', message);
}

/**
 * @param {string} name
 * @param {unknown} setting
 * @param {string} [what] its numbers are
 * @returns {Int32Array} a copy
 */
export function int32(name, setting, what = 'one number per batch row') {
  if (arrayKind(setting) !== 'Int32Array') {
    throw typeError('type', `${name} must be an Int32Array with ${what}, got ${show(setting)}`);
  }
  return new Int32Array(/** @type {Int32Array} */ (setting));
}

/**
 * @param {any} setting
 * @returns {readonly [number, number]} left and right bound
 */
export function windowBounds(setting) {
  if (!Array.isArray(setting) || setting.length !== 2) {
    throw typeError('type', `window must be [left, right], got ${show(setting)}`);
  }
  const [left, right] = setting;
  for (const bound of [left, right]) {
    if (typeof bound !== 'number') throw typeError('type', `window must be two numbers, got ${show(setting)}`);
    if (bound !== Infinity && !(Number.isSafeInteger(bound) && bound >= 0)) {
      throw rangeError('option', `window must be whole numbers, 0 or more, or Infinity, got ${show(setting)}`);
    }
  }
  return [left, right];
}

/**
 * @param {any} setting
 * @returns {number | Int32Array} the offset, or a copy of one per batch row
 */
export function offset(setting) {
  if (typeof setting !== 'number') {
    if (arrayKind(setting) !== 'Int32Array') {
      throw typeError('type', `queryOffset must be a number or an Int32Array, got ${show(setting)}`);
    }
    return int32('queryOffset', setting);
  }
  if (Number.isInteger(setting) && Math.abs(setting) <= 2 ** 31) return setting;
  throw rangeError('option', `queryOffset must be a whole number between -2^31 and 2^31, got ${setting}`);
}

/**
 * The fields of an option that is an object.
 * @param {string} name of the option
 * @param {any} setting
 * @param {readonly string[]} fields all of them needed
 * @returns {unknown[]} their values
 */
export function fieldsOf(name, setting, fields) {
  if (Object.prototype.toString.call(setting) !== '[object Object]') {
    throw typeError('type', `${name} must be an object { ${fields.join(', ')} }, got ${show(setting)}`);
  }
  for (const field in setting) {
    if (!fields.includes(field)) {
      throw typeError('unknown-option', `${name} has no field '${field}'; its fields are ${fields.join(' and ')}`);
    }
  }
  return fields.map((field) => {
    const found = setting[field];
    if (found === undefined) throw typeError('type', `${name} needs ${fields.join(' and ')}, and ${field} is missing`);
    return found;
  });
}
