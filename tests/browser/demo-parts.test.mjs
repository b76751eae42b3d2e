// The demo page's modules one by one, in the page, with a clock that the test sets: no case depends on how fast the machine is.

import assert from 'node:assert/strict';
import { browserTest, withModules } from './helpers/demo.mjs';

const files = [
  ...['blocks', 'check', 'run', 'state'].map((name) => `sections/wall/${name}`),
  ...['data', 'format', 'pace'].map((name) => `parts/${name}`),
];

/** In the page: a clock in milliseconds that moves only when it is moved. */
function makeClock() {
  let now = 0;
  performance.now = () => now;
  return { pass: (/** @type {number} */ milliseconds) => void (now += milliseconds) };
}

/**
 * Runs `body` in the page with the page's modules and stopClock().
 * @template A, R
 * @param {(parts: any, argument: A) => R | Promise<R>} body
 * @param {A} [argument]
 */
const inPage = (body, argument) => withModules(files, body, argument, { stopClock: makeClock });

/** In the page: a pass over `tokens` by a computer of the given speed, which computes nothing. */
const simulate = async (
  /** @type {any} */ { stopClock, Pace, BlockPlan, attendInBlocks },
  /** @type {{ tokens: number, causal: boolean, speed: number, abortAfter?: number, slowdown?: number }} */ given,
) => {
  const { tokens, causal, speed, abortAfter = Infinity, slowdown = 1 } = given;
  const clock = stopClock();
  const controller = new AbortController();
  const pace = new Pace(controller.signal);
  const tensor = { data: new Float32Array(tokens) };
  /** @type {[first: number, rows: number, milliseconds: number][]} */
  const calls = [];
  const fake = {
    attention: (
      /** @type {{ shape: number[] }} */ query,
      /** @type {unknown} */ _key,
      /** @type {unknown} */ _value,
      /** @type {{ queryOffset?: number, out: Float32Array }} */ options,
    ) => {
      const [rows] = query.shape;
      const first = options.out.byteOffset / 4;
      if (causal !== (options.queryOffset === first)) throw new Error(`offset ${options.queryOffset} at row ${first}`);
      const keys = causal ? first + (rows + 1) / 2 : tokens;
      const milliseconds = ((rows * keys) / speed) * (calls.length < 10 ? 1 : slowdown);
      calls.push([first, rows, milliseconds]);
      clock.pass(milliseconds);
      if (calls.length === abortAfter) controller.abort(new Error('enough'));
    },
  };
  const problem = { query: tensor, key: tensor, value: tensor, tokens, headDim: 1, causal };
  const out = new Float32Array(tokens);
  const ended = await attendInBlocks(fake, problem, out, new BlockPlan(), pace).then(
    () => 'done',
    (/** @type {Error} */ error) => error.message,
  );
  return { ended, calls, slices: pace.slices, longest: pace.longest };
};

/**
 * @param {Parameters<typeof simulate>[1]} given
 */
const simulated = (given) => inPage(simulate, given);

for (const causal of [true, false]) {
  browserTest(`blocks cover each row once and no slice is long, ${causal ? 'causal' : 'dense'}`, async () => {
    const { ended, calls, longest } = await simulated({ tokens: 10_000, causal, speed: 50_000 });
    assert.equal(ended, 'done');
    let next = 0;
    for (const [first, rows] of calls) {
      assert.equal(first, next);
      next += rows;
    }
    assert.equal(next, 10_000);
    assert.ok(longest <= 15.5, `${longest} ms`);
  });
}

browserTest('the number of slices grows with the work, and shrinks with speed', async () => {
  const slices = async (/** @type {Parameters<typeof simulate>[1]} */ given) => (await simulated(given)).slices;
  const base = await slices({ tokens: 8192, causal: false, speed: 50_000 });
  // 8192² scores in slices of at most 15 ms, of which at least 8 are used but for the first few.
  assert.ok(base >= 8192 ** 2 / 50_000 / 15 && base <= 8192 ** 2 / 50_000 / 8 + 10, `${base} slices`);
  assert.ok((await slices({ tokens: 16_384, causal: false, speed: 50_000 })) > 3 * base);
  assert.ok((await slices({ tokens: 8192, causal: true, speed: 50_000 })) < 0.7 * base);
  assert.ok((await slices({ tokens: 8192, causal: false, speed: 200_000 })) < 0.4 * base);
});

browserTest('a computer that becomes five times slower in the middle has one long slice, not many', async () => {
  const steady = await simulated({ tokens: 8192, causal: false, speed: 100_000 });
  const slowed = await simulated({ tokens: 8192, causal: false, speed: 100_000, slowdown: 5 });
  assert.ok(steady.longest <= 15.5);
  assert.ok(slowed.longest > 50 && slowed.longest <= 80, `${slowed.longest} ms`);
  assert.equal(slowed.calls.filter(([, , milliseconds]) => milliseconds > 15.5).length, 1);
});

browserTest('a slice of the slowest computer that the page reckons with is short from the first', async () => {
  const { longest } = await simulated({ tokens: 2048, causal: false, speed: 4000 });
  assert.ok(longest <= 15.5, `${longest} ms`);
});

browserTest('a slice that was held up from outside still gets on by a row', async () => {
  const rows = await inPage(({ rowsWithin }) =>
    [true, false].map((causal) => [-1e6, 0, 0.5, 1e12].map((scores) => rowsWithin(100, 1000, causal, scores))),
  );
  for (const each of rows) assert.deepEqual(each, [1, 1, 1, 900]);
});

browserTest('a stop ends the run within the slice it falls into', async () => {
  const { ended, calls } = await simulated({ tokens: 32_768, causal: false, speed: 50_000, abortAfter: 12 });
  assert.equal(ended, 'enough');
  assert.ok(calls.length >= 12 && calls.length <= 13, `${calls.length} calls`);
});

browserTest('attention in blocks gives the bits of one call', async () => {
  const blocks = await inPage(async ({ load, stopClock, normal, Pace, BlockPlan, attendInBlocks }) => {
    const tokens = 1500;
    const headDim = 64;
    const sdpa = await load();
    const clock = stopClock();
    const shape = [tokens, headDim];
    const [query, key, value] = [1, 2, 3].map((seed) => {
      const tensor = sdpa.tensor(shape);
      tensor.data.set(Float32Array.from({ length: tokens * headDim }, normal(seed)));
      return tensor;
    });
    const timed = {
      attention: (/** @type {any[]} */ ...call) => {
        clock.pass(7);
        return sdpa.attention(...call);
      },
    };
    return Promise.all(
      [true, false].map(async (causal) => {
        const out = new Float32Array(tokens * headDim);
        const problem = { query, key, value, tokens, headDim, causal };
        const { blocks: count } = await attendInBlocks(timed, problem, out, new BlockPlan(), new Pace());
        const whole = sdpa.attention(query, key, value, { causal }).out.data;
        return { count, differ: out.filter((number, i) => !Object.is(number, whole[i])).length };
      }),
    );
  });
  for (const { count, differ } of blocks) {
    assert.ok(count > 3, `${count} blocks`);
    assert.equal(differ, 0);
  }
});

browserTest('the check finds the row with one wrong number, and one that is none', async () => {
  const found = await inPage(async ({ normal, Pace, checkRows, referenceRow, sampleRows }) => {
    const tokens = 300;
    const headDim = 8;
    const draw = (/** @type {number} */ seed) => ({
      data: Float32Array.from({ length: tokens * headDim }, normal(seed)),
    });
    const problem = { query: draw(1), key: draw(2), value: draw(3), tokens, headDim, causal: true };
    const out = new Float32Array(tokens * headDim);
    for (let row = 0; row < tokens; row++) out.set(await referenceRow(problem, row, new Pace()), row * headDim);
    const rows = sampleRows(tokens, 16, 4);
    const check = (/** @type {Float32Array} */ array) => checkRows(problem, array, rows, new Pace());
    const changed = (/** @type {number} */ row, /** @type {number} */ by) => {
      const copy = out.slice();
      copy[row * headDim + 3] += by;
      return check(copy);
    };
    const other = rows[7];
    return {
      rows,
      firstRow: Array.from(out.subarray(0, headDim)),
      firstValue: Array.from(problem.value.data.subarray(0, headDim)),
      right: await check(out),
      last: await changed(tokens - 1, 1e-4),
      other,
      middle: await changed(other, -1e-5),
      none: await changed(0, NaN),
      causalIgnored: await checkRows({ ...problem, causal: false }, out, rows, new Pace()),
    };
  });
  assert.equal(new Set(found.rows).size, 16);
  assert.deepEqual([found.rows[0], found.rows[15]], [0, 299]);
  // Causal: the first query sees the first value alone.
  assert.deepEqual(found.firstRow, found.firstValue);
  // Half a unit in the last place of a float32 below 4.
  assert.ok(found.right.maxError <= 2 ** -23);
  assert.equal(found.last.row, 299);
  assert.ok(Math.abs(found.last.maxError - 1e-4) < 1e-6);
  assert.equal(found.middle.row, found.other);
  assert.ok(Math.abs(found.middle.maxError - 1e-5) < 1e-6);
  assert.ok(Number.isNaN(found.none.maxError));
  assert.ok(found.causalIgnored.maxError > 0.1);
});

browserTest('data drawn in slices is the same for the same seed, normal, and finite', async () => {
  const { same, other, mean, variance, fourth, finite, slices } = await inPage(
    async ({ stopClock, Pace, fillNormal, normal }) => {
      const clock = stopClock();
      const count = 200_000;
      const pace = new Pace();
      const sliced = new Float32Array(count);
      const tensor = {
        get data() {
          clock.pass(25);
          return sliced;
        },
      };
      // Each look at the tensor uses up the slice: the numbers must not depend on where slices end.
      await fillNormal(tensor, 5, pace);
      const whole = Float32Array.from({ length: count }, normal(5));
      const moment = (/** @type {number} */ n) => sliced.reduce((sum, number) => sum + number ** n, 0) / count;
      return {
        same: sliced.every((number, i) => number === whole[i]),
        other: normal(6)() !== normal(5)(),
        mean: moment(1),
        variance: moment(2),
        fourth: moment(4),
        finite: sliced.every(Number.isFinite),
        slices: pace.slices,
      };
    },
  );
  assert.ok(same && other && finite);
  assert.ok(slices > 10);
  assert.ok(Math.abs(mean) < 0.01 && Math.abs(variance - 1) < 0.02 && Math.abs(fourth - 3) < 0.15);
});

browserTest('settings survive as texts, and numbers are written with three digits', async () => {
  const { trips, stops, texts } = await inPage(
    ({
      stops: all,
      builds,
      toTexts,
      fromTexts,
      sizeText,
      durationText,
      power,
      short,
      shortNumber,
      cellText,
      fixed,
    }) => ({
      stops: all,
      trips: all.flatMap((/** @type {number} */ tokens) =>
        builds.flatMap((/** @type {string} */ build) =>
          [true, false].map((causal) => {
            const back = fromTexts(toTexts({ tokens, causal, build }));
            return back.tokens === tokens && back.causal === causal && back.build === build;
          }),
        ),
      ),
      texts: {
        sizes: [0, 999, 999.6, 65_536, 999_600, 33_554_432, 4_294_967_296].map(sizeText),
        durations: [0.123, 99.96, 999.6, 12_345].map(durationText),
        powers: [0, 1.86e-7, 2e-6, 12, NaN].map(power),
        shorts: [9.994, 9.996, 1234.5].map(short),
        numbers: [0, 0.12345, -0.5, -2048, 1e6, -1e-7, 2.24e-4].map(shortNumber),
        cells: [3, -3, 0.126, -0.001, -12.5].map(cellText),
        fixed: [fixed(-0.04, 1), fixed(-1.25, 2), fixed(0, 2)],
      },
    }),
  );
  assert.deepEqual([stops[0], stops.length, stops.at(-1)], [128, 19, 65_536]);
  assert.ok(trips.length === 152 && trips.every(Boolean));
  assert.deepEqual(texts, {
    sizes: ['0 bytes', '999 bytes', '1.00 KB', '65.5 KB', '1.00 MB', '33.6 MB', '4.29 GB'].map((text) =>
      text.replace(' ', '\u00a0'),
    ),
    durations: ['0.12 ms', '100 ms', '1.00 s', '12.3 s'].map((text) => text.replace(' ', '\u00a0')),
    powers: ['0', '1.9 × 10⁻⁷', '2.0 × 10⁻⁶', '1.2 × 10¹', 'NaN'].map((text) => text.replaceAll(' ', '\u00a0')),
    shorts: ['9.99', '10.0', '1\u202f235'],
    numbers: ['0', '0.123', '−0.5', '−2\u202f048', '10⁶', '−10⁻⁷', '2.2\u00a0×\u00a010⁻⁴'],
    cells: ['3', '−3', '0.13', '0.00', '−13'],
    fixed: ['0.0', '−1.25', '0.00'],
  });
});
