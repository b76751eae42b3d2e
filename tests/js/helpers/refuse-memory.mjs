// Memory that is refused at one allocation after the other, in the package as it is shipped.

import assert from 'node:assert/strict';
import { AttentionError } from 'sdpa';

/** @typedef {import('sdpa').Sdpa} Sdpa */

/**
 * Does something with so little memory that its first allocation fails, then its second, and so on, until it succeeds.
 * @template T
 * @param {Sdpa} sdpa
 * @param {number} limit the instance's maxMemory
 * @param {() => T} act
 * @param {(error: AttentionError) => void} refused called after each refusal, when there is memory again
 * @returns {{ result: T, refusals: number }}
 */
export function refuseEachAllocation(sdpa, limit, act, refused) {
  let room = 0;
  for (let refusals = 0; ; refusals++) {
    const { held } = sdpa.memory();
    const filler = sdpa.tensor([limit - held - room], 'bool');
    let error;
    try {
      return { result: act(), refusals };
    } catch (thrown) {
      error = thrown;
    } finally {
      filler.dispose();
    }
    assertOutOfMemory(error);
    assert.equal(sdpa.memory().held, held, 'memory was lost');
    refused(error);
    // So that this very allocation is granted.
    room += /** @type {number} */ (error.needed) - /** @type {number} */ (error.allowed);
  }
}

/** Bytes by which there is more memory each time. */
const step = 16384;

/**
 * The same where the engine has no more memory to give, in steps: not the limit refuses, but the allocator.
 * @template T
 * @param {Sdpa} sdpa an instance without maxMemory
 * @param {() => T} act
 * @param {(error: AttentionError) => void} refused called after each refusal, still without memory
 * @returns {{ result: T, refusals: number }}
 */
export function refuseGrowth(sdpa, act, refused) {
  const { prototype } = WebAssembly.Memory;
  const { grow } = prototype;
  prototype.grow = () => {
    throw new RangeError('no more memory');
  };
  /** @type {import('sdpa').SdpaTensor[]} */
  const fillers = [];
  try {
    for (let bytes = 2 ** 20; bytes >= 64; bytes = bytes > step ? step : bytes / 4) {
      try {
        for (;;) fillers.push(sdpa.tensor([bytes], 'bool'));
      } catch (error) {
        assertOutOfMemory(error);
      }
    }
    for (let refusals = 0; ; refusals++) {
      const { held } = sdpa.memory();
      try {
        return { result: act(), refusals };
      } catch (error) {
        assertOutOfMemory(error);
        assert.equal(sdpa.memory().held, held, 'memory was lost');
        refused(/** @type {AttentionError} */ (error));
      }
      for (let freed = 0; freed < step;) {
        const filler = fillers.pop();
        assert.ok(filler, 'all memory is free, and it does not suffice');
        freed += filler.shape[0];
        filler.dispose();
      }
    }
  } finally {
    prototype.grow = grow;
    for (const filler of fillers) filler.dispose();
  }
}

/** @param {unknown} error @returns {asserts error is AttentionError} */
function assertOutOfMemory(error) {
  assert.ok(AttentionError.is(error) && error instanceof RangeError, /** @type {any} */ (error)?.stack);
  assert.equal(error.code, 'out-of-memory', error.stack);
  assert.match(error.message, /needs \d+ bytes and \d+ bytes are allowed/);
}
