// What this engine has. Each probe is a module of a few dozen bytes that the engine accepts or refuses; nothing is
// looked up by the name of a browser.

/**
 * What this engine has, as `features()` finds it.
 * @typedef {object} Features
 * @property {boolean} webAssembly WebAssembly exists
 * @property {boolean} simd 128-bit SIMD
 * @property {boolean} relaxed relaxed SIMD
 * @property {boolean} relaxedFused the relaxed multiply-add rounds once: only then is the relaxed build faster
 * @property {boolean} sharedMemory SharedArrayBuffer exists and wasm memory may be shared
 * @property {boolean} float16Array Float16Array exists
 */

const header = [0, 97, 115, 109, 1, 0, 0, 0];

// (func (result v128) i32.const 0  i8x16.splat  i8x16.popcnt)
const simdProbe = [1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];

// (func (result v128) i32.const 1  i8x16.splat  i32.const 2  i8x16.splat  i8x16.relaxed_swizzle)
const relaxedProbe = [
  1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11,
];

// (func (export "f") (param f32 f32 f32) (result f32): lane 0 of f32x4.relaxed_madd of the three splats
const fusedProbe = [
  1, 8, 1, 96, 3, 125, 125, 125, 1, 125, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 22, 1, 20, 0, 32, 0, 253, 19, 32, 1,
  253, 19, 32, 2, 253, 19, 253, 133, 2, 253, 31, 0, 11,
];

// (memory 1 1 shared) and an atomic load
const sharedProbe = [1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1, 10, 11, 1, 9, 0, 65, 0, 254, 16, 2, 0, 26, 11];

/** @param {number[]} body */
const bytesOf = (body) => new Uint8Array([...header, ...body]);

/** @param {number[]} body */
function valid(body) {
  try {
    return WebAssembly.validate(bytesOf(body));
  } catch {
    return false;
  }
}

/**
 * With x = 1 + 2^-12, x·x - (1 + 2^-11) is 2^-24 where the product is not rounded before the addition, and 0 where it is.
 */
function probeFused() {
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytesOf(fusedProbe)));
    const multiplyAdd = /** @type {(a: number, b: number, c: number) => number} */ (exports.f);
    const x = 1 + 2 ** -12;
    return multiplyAdd(x, x, -(1 + 2 ** -11)) === 2 ** -24;
  } catch {
    // Refused, or a host that runs no code made of bytes: then the plain build is the one to take.
    return false;
  }
}

/**
 * Looks at the engine; takes well under a millisecond and keeps nothing.
 * @returns {Features}
 */
export function features() {
  const webAssembly = typeof WebAssembly === 'object' && WebAssembly !== null;
  const relaxed = webAssembly && valid(relaxedProbe);
  return {
    webAssembly,
    simd: webAssembly && valid(simdProbe),
    relaxed,
    relaxedFused: relaxed && probeFused(),
    sharedMemory: webAssembly && typeof SharedArrayBuffer === 'function' && valid(sharedProbe),
    float16Array: 'Float16Array' in globalThis,
  };
}
