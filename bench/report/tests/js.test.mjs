// What the JavaScript bench makes of its measurements.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bandwidth, bandwidthModule, turnBytes } from '../../js/bandwidth.mjs';
import { CASES, keyValueBytes } from '../../js/cases.mjs';
import { ARITHMETIC } from '../../js/ceiling.mjs';
import { leastMs } from '../../js/measure.mjs';
import { report } from '../../js/report.mjs';

/** @returns {any} results of a run with everything in it */
function results() {
  const timing = {
    variant: 'simd',
    ms: 2,
    gflops: 15,
    peak: { arithmetic: 'mul+add', registers: 40, loop: 30 },
    shareOfRegisters: 0.375,
    shareOfLoop: 0.5,
    otherLoad: 0,
  };
  return {
    environment: {
      date: '2024-05-06T07:08:09.000Z',
      commit: '0123456789abcdef',
      command: 'node bench/js/bench.mjs',
      machine: { cpu: 'Some CPU', cores: 2, memory: 1, system: 'linux x64' },
      versions: { sdpa: '0.1.0', node: '24.1.0', v8: '13.6', emscripten: '6.0.5' },
    },
    turns: 3,
    skipped: {},
    cases: [
      { name: 'attention/prefill/p', timings: [{ ...timing, otherLoad: 0.5 }] },
      { name: 'attention/decode/d', timings: [{ ...timing, gbps: 8, read: 12, overLimit: 1.5 }] },
    ],
    smallestCall: [{ variant: 'simd', resident: 1.5, arrays: 2 }],
    arraysCall: {
      name: 'attention/arrays/a',
      timings: [{ variant: 'simd', resident: 1.6, arrays: 2, ratio: 1.25, otherLoad: 0 }],
    },
    workers: {
      cases: [
        {
          name: 'attention/workers/w',
          timings: [{ variant: 'simd', sync: 30, one: 36, two: 20, ratio: 1.8, otherLoad: 0.2 }],
        },
      ],
    },
    backwardMemory: [{ variant: 'simd', ms: 1000, arrays: 16e6, allocated: 17e6, resident: 35e6 }],
  };
}

test('the tables show speeds and shares, what decode is over its limit, what arrays cost and what workers gain', () => {
  const markdown = report(results());
  for (const line of [
    '| `prefill/p` | 2.00 ms, 15.0 GFLOP/s, 38 % / 50 % (noisy) |',
    '| `decode/d` | 2.00 ms, 15.0 GFLOP/s, 38 % / 50 % |',
    '| `decode/d` | 8.00 of 12.0 GB/s, 1.50× |',
    '| `workers/w`, simd | 30.0 ms | 36.0 ms | 20.0 ms | 1.80 (noisy) |',
    '| `arrays/a`, simd: plain arrays against resident tensors | 2.00 ms against 1.60 ms: 1.25× |',
    '| 8192 × 8192 × 64, one head, forward and backward on arrays, simd: memory in all | 35.0 MB: 16.0 MB of inputs, results and gradients, 17.0 MB for copies and work |',
  ]) {
    assert.ok(markdown.includes(`${line}\n`), `${line}\n\n${markdown}`);
  }
  assert.match(markdown, /Node 24\.1\.0 \(V8 13\.6\)/);
});

test('results from before there were limits, arrays and workers have dashes in their place', () => {
  const old = results();
  delete old.cases[1].timings[0].read;
  delete old.cases[1].timings[0].overLimit;
  delete old.arraysCall;
  delete old.workers;
  const markdown = report(old);
  for (const line of [
    '| `decode/d` | 8.00 of – GB/s, – |',
    '| plain arrays against resident tensors | – |',
    '| two workers against one | – |',
  ]) {
    assert.ok(markdown.includes(`${line}\n`), `${line}\n\n${markdown}`);
  }
});

test('the tables say why workers were not compared', () => {
  const markdown = report({ ...results(), workers: { skipped: 'one processor', cases: [] } });
  assert.ok(markdown.includes('| two workers against one | not measured: one processor |\n'), markdown);
});

test('the least time of a decode call is that of reading or that of computing, whichever is longer', () => {
  const c = CASES.find(({ nickname }) => nickname === 'dec-llama');
  assert.ok(c);
  const load = { busy: 0, ours: 0, total: 1 };
  const megabytes = (2 * 8 * 2048 * 128 + 2 * 32 * 128) * 4e-6;
  const megaflops = 4 * 32 * 2048 * 128 * 1e-6;
  /** @param {number} read @param {number} loop */
  const least = (read, loop) => {
    const [start, end] = [0.5, 1.5].map((x) => ({ registers: 1, loop: x * loop, read: x * read }));
    return leastMs(c, { ms: [1], before: start, after: end, load });
  };
  assert.ok(Math.abs(least(10, 1e6) / (megabytes / 10) - 1) < 1e-9);
  assert.ok(Math.abs(least(1e6, 20) / (megaflops / 20) - 1) < 1e-9);
  assert.equal(keyValueBytes(c), 2 * 8 * 2048 * 128 * 4);
});

for (const variant of /** @type {const} */ (['simd', 'scalar'])) {
  test(`the loop that measures the ${variant} build's bandwidth reads every number once, and nothing else`, () => {
    const arithmetic = ARITHMETIC[variant];
    const bytes = 3 * turnBytes(arithmetic);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bandwidthModule(arithmetic, bytes)));
    const { memory, read } = /** @type {{ memory: WebAssembly.Memory, read: () => number }} */ (
      /** @type {unknown} */ (exports)
    );
    const numbers = new Float32Array(memory.buffer);
    for (let i = 0; i < bytes / 2; i++) {
      numbers.fill(0);
      numbers[i] = 1;
      assert.equal(read(), i < bytes / 4 ? 1 : 0, `number ${i}`);
    }
    const bandwidth = new Bandwidth(variant, 100_000);
    assert.equal(bandwidth.bytes % turnBytes(arithmetic), 0);
    assert.ok(bandwidth.bytes <= 100_000 && bandwidth.bytes > 99_000, `${bandwidth.bytes} bytes`);
    const speed = bandwidth.measure();
    assert.ok(speed > 0 && Number.isFinite(speed), `${speed} GB/s`);
  });
}
