// Running a table of settings from the peers' own suites. As in tests/native/grids: the largest error against float64 is at most twice that
// of the plain float32 computation of the same rows. Both are the largest of few draws with long tails, so a setting whose error is too
// large is repeated with other numbers and judged by all of them.
//
// SDPA_GRIDS=full runs every setting; otherwise a small sample is run, the same each time.

import assert from 'node:assert/strict';
import { randomSource } from '../helpers/reference.mjs';
import { VARIANT } from '../helpers/sdpa.mjs';

export const isFull = process.env.SDPA_GRIDS === 'full';

const enoughRows = 60;
const mostRepeats = 250;
/** Of the plain computation's error. */
const mostOfPlain = 2;

/** Errors of a setting so far. */
export class Errors {
  rows = 0;
  out = 0;
  plain = 0;
  /** What is allowed beside. */
  absolute = 0;

  /**
   * @param {ArrayLike<number>} got
   * @param {ArrayLike<number>} exact
   * @param {ArrayLike<number>} plain
   */
  add(got, exact, plain) {
    assert.equal(got.length, exact.length);
    for (let n = 0; n < exact.length; n++) {
      this.out = Math.max(this.out, differ(got[n], exact[n]));
      this.plain = Math.max(this.plain, differ(plain[n], exact[n]));
    }
  }

  /** @param {ArrayLike<number>} exact twice the rounding of adding 0.3 to these in float32 is allowed beside */
  addRounding(exact) {
    for (let n = 0; n < exact.length; n++) {
      const x = Math.fround(exact[n]);
      const there = Math.fround(x + Math.fround(0.3));
      this.absolute = Math.max(this.absolute, 2 * Math.abs(Math.fround(there - Math.fround(0.3)) - x));
    }
  }

  /** The error over that of the plain computation. */
  get ratio() {
    return this.out <= this.absolute ? 0 : (this.out - this.absolute) / this.plain;
  }
}

/** @param {number} a @param {number} b */
function differ(a, b) {
  if (Object.is(a, b) || a === b) return 0;
  const error = Math.abs(a - b);
  return Number.isFinite(error) ? error : Infinity;
}

/**
 * @template S
 * @param {string} table its name
 * @param {S[]} settings
 * @param {object} how
 * @param {number} how.sample how many settings the sample has
 * @param {(setting: S, seed: number, errors: Errors) => Promise<number> | number} how.run makes numbers, calls, adds the errors, and answers how
 *   many rows were compared
 * @param {(setting: S) => number} [how.cost] settings dearer than 1 are no part of the sample
 */
export async function sweep(table, settings, { sample, run, cost = () => 0 }) {
  const start = process.hrtime.bigint();
  const chosen = isFull ? settings.map((_, n) => n) : draw(settings, sample, cost);
  let calls = 0;
  let worst = 0;
  let worstName = '';
  /** @type {string[]} */
  const wrong = [];
  for (const index of chosen) {
    const setting = settings[index];
    const errors = new Errors();
    let rows = 0;
    for (let n = 0, next = 1; n < next; n++) {
      rows += await run(setting, index + 1 + 100_000 * n, errors);
      calls++;
      if (n + 1 < next) continue;
      const few = rows < enoughRows && cost(setting) <= 1;
      // Judged a few times only: of many looks one would find the error small by chance.
      const wrongSoFar = errors.ratio > mostOfPlain && next < mostRepeats;
      if (few) next = Math.ceil((next * enoughRows) / rows);
      else if (wrongSoFar) next *= 4;
    }
    const name = `#${index} ${JSON.stringify(setting)}`;
    if (errors.ratio > worst) [worst, worstName] = [errors.ratio, name];
    if (errors.ratio > mostOfPlain) wrong.push(`${name}: error ${errors.out}, plain float32 ${errors.plain}`);
  }
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  console.log(
    `[   grid   ] ${`${table}, ${VARIANT}`.padEnd(48)} ${chosen.length} of ${settings.length} settings ${calls} calls ` +
      `${seconds.toFixed(1)} s  worst ${worst.toFixed(2)}  ${worstName}`,
  );
  assert.deepEqual(wrong, []);
  assert.ok(calls > 0);
}

/**
 * @template S
 * @param {S[]} settings
 * @param {number} count
 * @param {(setting: S) => number} cost
 */
function draw(settings, count, cost) {
  const { uniform } = randomSource(settings.length);
  const order = settings.map((_, n) => ({ n, key: uniform() })).sort((a, b) => a.key - b.key);
  return order
    .map(({ n }) => n)
    .filter((n) => cost(settings[n]) <= 1)
    .slice(0, count);
}

/**
 * Every combination of the values of the axes, in order.
 * @param {Record<string, readonly any[]>} axes
 * @returns {any[]}
 */
export function cross(axes) {
  return Object.entries(axes).reduce(
    (all, [name, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    /** @type {any[]} */ ([{}]),
  );
}

/**
 * So many combinations drawn for each combination of the first axes.
 * @param {Record<string, readonly any[]>} sizes
 * @param {Record<string, readonly any[]>} options
 * @param {number} count
 * @returns {any[]}
 */
export function drawOptions(sizes, options, count) {
  const { uniform } = randomSource(7);
  const pick = (/** @type {readonly any[]} */ values) => values[Math.floor(uniform() * values.length)];
  return cross(sizes).flatMap((size) =>
    Array.from({ length: count }, () => ({
      ...size,
      ...Object.fromEntries(Object.entries(options).map(([name, values]) => [name, pick(values)])),
    })),
  );
}

/** Drawing each number takes longer than a call: tensors are stretches of these, begun anywhere. A prime number of them. */
const pool = Float32Array.from({ length: 1_000_003 }, randomSource(1).normal);

/**
 * Random numbers of a setting.
 * @param {number} seed
 */
export function numbers(seed) {
  const { uniform } = randomSource(seed);
  const whole = (/** @type {number} */ low, /** @type {number} */ high) =>
    low + Math.floor(uniform() * (high - low + 1));
  /** Unit normal. @param {number[]} shape */
  const tensor = (...shape) => {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    for (let done = 0, at = whole(0, pool.length - 1); done < data.length; at = 0) {
      const part = pool.subarray(at, at + data.length - done);
      data.set(part, done);
      done += part.length;
    }
    return { data, shape };
  };
  return { uniform, whole, tensor };
}

/**
 * The first row, the last, and others.
 * @param {number} length
 * @param {number} count
 * @param {(low: number, high: number) => number} whole
 */
export function pickRows(length, count, whole) {
  if (length <= count) return Array.from({ length }, (_, i) => i);
  const rows = new Set([0, length - 1]);
  while (rows.size < count) rows.add(whole(0, length - 1));
  return [...rows].sort((a, b) => a - b);
}

/**
 * Rows of a (B, H, L, D) result.
 * @param {{ data: ArrayLike<number> & { subarray(from: number, to: number): ArrayLike<number> }, shape: number[] }} tensor
 * @param {number[]} picks
 */
export function rowsOf({ data, shape: [B, H, L, D] }, picks) {
  const rows = new Float32Array(B * H * picks.length * D);
  for (let head = 0; head < B * H; head++) {
    picks.forEach((i, n) => {
      const at = (head * L + i) * D;
      rows.set(data.subarray(at, at + D), (head * picks.length + n) * D);
    });
  }
  return rows;
}
