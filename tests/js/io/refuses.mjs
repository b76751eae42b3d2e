import assert from 'node:assert/strict';
import { AttentionError } from 'sdpa';

/**
 * @param {() => unknown} run
 * @param {string} code
 * @param {RegExp} message
 */
export function refuses(run, code, message) {
  assert.throws(run, (error) => {
    assert.ok(AttentionError.is(error), `an AttentionError, not ${error}`);
    assert.match(error.message, message);
    assert.equal(error.code, code, error.message);
    assert.ok(error instanceof (code === 'type' || code === 'unknown-option' ? TypeError : RangeError), String(error));
    return true;
  });
}
