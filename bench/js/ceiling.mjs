/**
 * The most GFLOP/s that one core gets out of this engine with a build's own arithmetic, measured by two loops that do
 * nothing else:
 *
 * - `registers`: independent chains acc = acc·x + y, no memory. The peak of the arithmetic itself.
 * - `loop`: C += A[k]ᵀ·B[k] with C in registers and both panels in the first-level cache, each element of A loaded and
 *   spread over the lanes, each row of B loaded whole. The peak of a matrix product, which is what attention is made of.
 */

import { assemble, op } from './assembler.mjs';
import { atPosition, POSITIONS } from './stack.mjs';

/** @typedef {import('./assembler.mjs').Code} Code */
/** @typedef {import('sdpa').Variant} Variant */
/** @typedef {{ registers: number, loop: number }} Rates GFLOP/s */

/**
 * @typedef {object} Arithmetic
 * @property {string} name for the tables
 * @property {'v128' | 'f32'} type
 * @property {number} lanes
 * @property {number} rows of C in `loop`
 * @property {number} columns of C in `loop`, in values of `type`
 * @property {(value: number) => Code} constant
 * @property {(address: Code, offset: number) => Code} load
 * @property {(address: Code, offset: number) => Code} loadSpread one number into each lane
 * @property {(a: Code, b: Code) => Code} add
 * @property {(a: Code, b: Code, c: Code) => Code} multiplyAdd a·b + c
 * @property {(value: Code, local: number) => Code} total sum of the lanes; may use the local
 */

/** @type {Arithmetic} */
const simd = {
  name: 'mul+add',
  type: 'v128',
  lanes: 4,
  // 6×8 numbers: 12 accumulators, two of B and one of A in the 16 registers of x86.
  rows: 6,
  columns: 2,
  constant: (value) => op.f32x4.splat(op.f32.const(value)),
  load: op.v128.load,
  loadSpread: op.v128.load32Splat,
  add: op.f32x4.add,
  multiplyAdd: (a, b, c) => op.f32x4.add(op.f32x4.mul(a, b), c),
  total: (value, local) =>
    [1, 2, 3].reduce(
      (sum, lane) => op.f32.add(sum, op.f32x4.extractLane(lane, op.local.get(local))),
      op.f32x4.extractLane(0, op.local.tee(local, value)),
    ),
};

/** @type {Record<Variant, Arithmetic>} */
export const ARITHMETIC = {
  simd,
  relaxed: { ...simd, name: 'relaxed madd', multiplyAdd: op.f32x4.relaxedMadd },
  scalar: {
    name: 'scalar mul+add',
    type: 'f32',
    lanes: 1,
    rows: 3,
    columns: 3,
    constant: op.f32.const,
    load: op.f32.load,
    loadSpread: op.f32.load,
    add: op.f32.add,
    multiplyAdd: (a, b, c) => op.f32.add(op.f32.mul(a, b), c),
    total: (value) => value,
  },
};

/** Chains in `registers`: enough to hide the latency of a multiplication and an addition in two pipes. */
const CHAINS = 12;
const UNROLL = 4;
const X = 0.999;
const Y = 0.001;

/** Steps k of `loop`, and where its panels lie: apart, and small enough for any first-level cache. */
const DEPTH = 128;
const PANEL_A = 1024;
const PANEL_B = 16384;

/**
 * @param {Arithmetic} arithmetic
 * @param {number} first local
 * @param {number} [count]
 * @returns {Code} sum of everything in the accumulators
 */
export function totalOf(arithmetic, first, count = CHAINS) {
  const { get } = op.local;
  const sum = Array.from({ length: count - 1 }, (_, i) => first + 1 + i).reduce(
    (code, local) => arithmetic.add(code, get(local)),
    get(first),
  );
  return arithmetic.total(sum, first);
}

/** @param {number} counter local @param {number} step @returns {Code} */
const countDown = (counter, step) => op.local.tee(counter, op.i32.sub(op.local.get(counter), op.i32.const(step)));

/** @param {Arithmetic} arithmetic @returns {import('./assembler.mjs').Func} */
function registersFunction(arithmetic) {
  const { type, constant, multiplyAdd } = arithmetic;
  const { get, set } = op.local;
  const [n, x, y, first] = [0, 1, 2, 3];
  const chains = Array.from({ length: CHAINS }, (_, i) => first + i);
  const round = chains.flatMap((acc) => set(acc, multiplyAdd(get(acc), get(x), get(y))));
  return {
    name: 'registers',
    params: ['i32'],
    result: 'f32',
    locals: Array(2 + CHAINS).fill(type),
    body: [
      ...set(x, constant(X)),
      ...set(y, constant(Y)),
      ...chains.flatMap((acc, i) => set(acc, constant(i))),
      ...op.loopWhile(Array(UNROLL).fill(round).flat(), countDown(n, 1)),
      ...totalOf(arithmetic, first),
    ],
  };
}

/** @param {Arithmetic} arithmetic @returns {import('./assembler.mjs').Func} */
function loopFunction(arithmetic) {
  const { type, lanes, rows, columns, load, loadSpread, multiplyAdd } = arithmetic;
  const { get, set } = op.local;
  const [n, k, a, b, spread, panel] = [0, 1, 2, 3, 4, 5];
  const first = panel + columns;
  const steps = 2;
  /** @param {number} s @returns {Code} */
  const step = (s) =>
    [
      ...Array.from({ length: columns }, (_, c) => set(panel + c, load(get(b), (s * columns + c) * lanes * 4))),
      ...Array.from({ length: rows }, (_, r) => [
        ...set(spread, loadSpread(get(a), (s * rows + r) * 4)),
        ...Array.from({ length: columns }, (__, c) => {
          const acc = first + r * columns + c;
          return set(acc, multiplyAdd(get(spread), get(panel + c), get(acc)));
        }).flat(),
      ]),
    ].flat();
  return {
    name: 'loop',
    params: ['i32'],
    result: 'f32',
    locals: ['i32', 'i32', 'i32', ...Array(1 + columns + rows * columns).fill(type)],
    body: [
      ...op.loopWhile(
        [
          ...set(k, op.i32.const(DEPTH)),
          ...set(a, op.i32.const(PANEL_A)),
          ...set(b, op.i32.const(PANEL_B)),
          ...op.loopWhile(
            [
              ...Array.from({ length: steps }, (_, s) => step(s)).flat(),
              ...set(a, op.i32.add(get(a), op.i32.const(steps * rows * 4))),
              ...set(b, op.i32.add(get(b), op.i32.const(steps * columns * lanes * 4))),
            ],
            countDown(k, steps),
          ),
        ],
        countDown(n, 1),
      ),
      ...totalOf(arithmetic, first, rows * columns),
    ],
  };
}

/**
 * @param {Arithmetic} arithmetic
 * @returns {Uint8Array<ArrayBuffer>} a module with `registers(n)`, `loop(n)` and its memory
 */
export const ceilingModule = (arithmetic) =>
  assemble({ pages: 1, functions: [registersFunction(arithmetic), loopFunction(arithmetic)] });

/** Turns of each loop in one sample: about a millisecond. */
const TURNS = { registers: 100_000, loop: 3000 };

/** Which of the samples, one for each of the stack's positions and sorted by time, counts: one of the quicker half. */
const COUNTS = 2;

/** A loop has settled when it has run so long and its last sample is so near to the best; it is given up after the longest. */
const SETTLE_MS = 300;
const SETTLED = 0.97;
const LONGEST_MS = 3000;

export class Ceiling {
  /** @type {{ registers: (n: number) => number, loop: (n: number) => number }} */
  #exports;
  /** FLOPs of one turn. */
  #flops;

  /** @param {Variant} variant */
  constructor(variant) {
    const arithmetic = ARITHMETIC[variant];
    const { rows, columns, lanes } = arithmetic;
    /** Name of the arithmetic. */
    this.arithmetic = arithmetic.name;
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(ceilingModule(arithmetic)));
    this.#exports = /** @type {any} */ (exports);
    this.#flops = { registers: 2 * CHAINS * UNROLL * lanes, loop: 2 * DEPTH * rows * columns * lanes };
    const { buffer } = /** @type {WebAssembly.Memory} */ (exports.memory);
    this.#verify(arithmetic, buffer);
    this.#settle('registers');
    this.#settle('loop');
  }

  /**
   * Fills the panels and makes sure that the loops do as much as is counted.
   * @param {Arithmetic} arithmetic
   * @param {ArrayBuffer} buffer
   */
  #verify({ lanes, rows, columns }, buffer) {
    const width = columns * lanes;
    const panelA = new Float32Array(buffer, PANEL_A, DEPTH * rows).map((_, i) => (i * 3) % 5);
    const panelB = new Float32Array(buffer, PANEL_B, DEPTH * width).map((_, i) => (i * 2) % 7);
    new Float32Array(buffer).set(panelA, PANEL_A / 4);
    new Float32Array(buffer).set(panelB, PANEL_B / 4);
    const n = 3;
    let product = 0;
    for (let k = 0; k < DEPTH; k++) {
      const sumA = panelA.subarray(k * rows, (k + 1) * rows).reduce((x, y) => x + y, 0);
      const sumB = panelB.subarray(k * width, (k + 1) * width).reduce((x, y) => x + y, 0);
      product += n * sumA * sumB;
    }
    // acc = acc·x + y tends to y / (1 - x).
    const limit = Y / (1 - X);
    let chains = 0;
    for (let i = 0; i < CHAINS; i++) chains += lanes * (limit + (i - limit) * X ** (n * UNROLL));
    const found = { registers: this.#exports.registers(n), loop: this.#exports.loop(n) };
    if (found.loop !== product || !(Math.abs(found.registers - chains) < 1e-5 * chains)) {
      throw new Error(
        `the loops that measure the peak compute ${found.registers} and ${found.loop}, not ${chains} and ${product}`,
      );
    }
  }

  /**
   * Runs a loop until the engine's optimised code is in use: short calls, as none changes to it midway.
   * @param {'registers' | 'loop'} name
   */
  #settle(name) {
    const start = performance.now();
    let best = 0;
    for (;;) {
      const rate = this.#rate(name);
      best = Math.max(best, rate);
      const elapsed = performance.now() - start;
      if (elapsed >= LONGEST_MS || (elapsed >= SETTLE_MS && rate >= SETTLED * best)) return;
    }
  }

  /**
   * Of several positions of the stack, as the engine keeps some of the accumulators there: see stack.mjs.
   * @param {'registers' | 'loop'} name
   * @returns {number} GFLOP/s, of a few samples of a millisecond
   */
  #rate(name) {
    const run = this.#exports[name];
    const samples = Array.from({ length: POSITIONS }, (_, i) =>
      atPosition(i, () => {
        const start = performance.now();
        run(TURNS[name]);
        return performance.now() - start;
      }),
    ).sort((a, b) => a - b);
    return (TURNS[name] * this.#flops[name]) / samples[COUNTS] / 1e6;
  }

  /** @returns {Rates} as measured now */
  measure() {
    return { registers: this.#rate('registers'), loop: this.#rate('loop') };
  }
}
