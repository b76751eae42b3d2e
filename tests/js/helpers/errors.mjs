// What an error of the package must look like.

import assert from 'node:assert/strict';
import { AttentionError } from 'sdpa';

/** What each code's error is besides an AttentionError. @type {Record<string, ErrorConstructor>} */
const kinds = {
  type: TypeError,
  disposed: RangeError,
  'unknown-option': TypeError,
  'load-failed': Error,
  'version-mismatch': Error,
};

/**
 * @param {unknown} error
 * @param {string} code
 * @param {RegExp} message
 */
export function assertError(error, code, message) {
  assert.ok(AttentionError.is(error), `not an AttentionError: ${error}`);
  assert.ok(error instanceof AttentionError);
  assert.ok(error instanceof (kinds[code] ?? RangeError), `${code} is a ${error.name}`);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return error;
}

/**
 * @param {() => unknown} action
 * @param {string} code
 * @param {RegExp} message
 * @returns {AttentionError}
 */
export function assertThrows(action, code, message) {
  let error;
  try {
    action();
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error, `nothing was thrown where '${code}' was expected`);
  return assertError(error, code, message);
}

/**
 * @param {Promise<unknown>} promise
 * @param {string} code
 * @param {RegExp} message
 * @returns {Promise<AttentionError>}
 */
export async function assertRejects(promise, code, message) {
  let error;
  try {
    await promise;
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error, `nothing was thrown where '${code}' was expected`);
  return assertError(error, code, message);
}
