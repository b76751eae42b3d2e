// Seeded pseudo-random numbers, so that a failing case can be had again.

/** Numbers in [0, 1) (mulberry32, public domain, by Tommy Ettinger). */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Unit-normal numbers (Box-Muller). */
export function normal(next) {
  return () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
}

/** Maker of float32 tensors of unit-normal numbers; `values` is the same for the reference. */
export function normalTensors(seed) {
  const gauss = normal(uniform(seed));
  return (...shape) => {
    const data = Float32Array.from({ length: shape.reduce((a, n) => a * n, 1) }, gauss);
    return { data, values: Float64Array.from(data), shape, dtype: 'float32' };
  };
}
