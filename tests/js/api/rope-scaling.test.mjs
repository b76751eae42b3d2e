// Scalings of rope(): frequencies worked out apart, with Python's floats, from the papers and the configurations of published models.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largestError, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { referenceRope } from './rope-reference.mjs';

const sdpa = await loadVariant();
const random = randomSource(6);

/**
 * Turns the pair k alone, far out, where a frequency that is wrong in its ninth digit shows.
 * @param {number} D
 * @param {any} options
 * @param {Record<number, number>} frequencies by pair
 * @param {number} [amplitude]
 */
function checkFrequencies(D, options, frequencies, amplitude = 1) {
  for (const [pair, frequency] of Object.entries(frequencies)) {
    const k = Number(pair);
    const data = new Float32Array(D);
    data[k] = 1;
    for (const offset of [1, 1000, Math.round(1 / frequency), Math.round(30 / frequency)]) {
      const got = sdpa.rope({ data, shape: [1, D] }, { ...options, offset }).data;
      const want = [amplitude * Math.cos(offset * frequency), amplitude * Math.sin(offset * frequency)];
      assert.ok(Math.abs(got[k] - want[0]) <= 3e-7, `pair ${k} at ${offset}: ${got[k]}, not ${want[0]}`);
      assert.ok(
        Math.abs(got[k + D / 2] - want[1]) <= 3e-7,
        `pair ${k} at ${offset}: ${got[k + D / 2]}, not ${want[1]}`,
      );
    }
  }
}

test('linear divides positions by the factor', () => {
  const x = random.tensor(1, 2, 9, 12);
  const want = referenceRope(x, { frequency: (k) => 10000 ** ((-2 * k) / 12) / 4, offset: 40 });
  assert.ok(largestError(sdpa.rope(x, { offset: 40, scaling: { type: 'linear', factor: 4 } }).data, want) <= 2 ** -22);
  const same = sdpa.rope(x, { offset: 10, base: 10000, scaling: { type: 'linear', factor: 1 } });
  assert.deepEqual(same, sdpa.rope(x, { offset: 10 }));
});

test('ntk raises the base by factor^(r/(r - 2)): the slowest pair turns factor times slower', () => {
  const x = random.tensor(1, 2, 9, 12);
  for (const rotaryDim of [12, 8]) {
    const base = 10000 * 8 ** (rotaryDim / (rotaryDim - 2));
    const options = { offset: 400, rotaryDim, pairing: 'interleaved' };
    const got = sdpa.rope(x, { ...options, scaling: { type: 'ntk', factor: 8 } });
    assert.ok(largestError(got.data, referenceRope(x, { ...options, base })) <= 2 ** -22);
    const slowest = 10000 ** (-(rotaryDim - 2) / rotaryDim);
    assert.ok(Math.abs(base ** (-(rotaryDim - 2) / rotaryDim) / (slowest / 8) - 1) < 1e-12);
  }
  const pair = random.tensor(4, 2);
  assert.deepEqual(sdpa.rope(pair, { scaling: { type: 'ntk', factor: 8 } }), sdpa.rope(pair));
});

test('yarn, as Llama 2 stretched from 4096 to 65536', () => {
  const options = { scaling: { type: 'yarn', factor: 16, originalMaxPosition: 4096 } };
  checkFrequencies(
    128,
    options,
    {
      0: 1,
      20: 0.056234132519034884,
      21: 0.04694085999795939,
      33: 0.0046004354678503435,
      45: 0.0001517716047318248,
      46: 8.334508951020767e-5,
      63: 7.217387404309103e-6,
    },
    1.2772588722239782,
  );
});

test('yarn, as Qwen: another base, factor 4 from 32768', () => {
  checkFrequencies(
    128,
    { base: 1e6, scaling: { type: 'yarn', factor: 4, originalMaxPosition: 32768 } },
    {
      0: 1,
      23: 0.006978305848598664,
      24: 0.005375321490790103,
      31: 0.0008029597275452304,
      39: 6.490394320837025e-5,
      40: 4.445698525097308e-5,
      63: 3.102344401879298e-7,
    },
    1.138629436111989,
  );
});

test('yarn, as gpt-oss: bounds that are not rounded to whole pairs', () => {
  const scaling = { type: 'yarn', factor: 32, originalMaxPosition: 4096 };
  const wanted = {
    0: 1,
    8: 0.05081327481546148,
    9: 0.03170569618466377,
    12: 0.006794959489732219,
    17: 0.00012931870124506322,
    18: 3.830881237375338e-5,
    31: 3.0235114281192165e-7,
  };
  checkFrequencies(64, { base: 150000, scaling: { ...scaling, truncate: false } }, wanted, 1.3465735902799727);
  const rounded = { 9: 0.031620752275346484, 13: 0.004069554714758242, 17: 0.00022794779579512524 };
  checkFrequencies(64, { base: 150000, scaling }, rounded, 1.3465735902799727);
});

test('yarn: betaFast, betaSlow and attentionFactor count', () => {
  const x = random.tensor(3, 64);
  const scaling = { type: 'yarn', factor: 8, originalMaxPosition: 2048 };
  const plain = sdpa.rope(x, { scaling, offset: 500 }).data;
  for (const more of [
    { betaFast: 16 },
    { betaSlow: 4 },
    { attentionFactor: 1 },
    { factor: 9 },
    { originalMaxPosition: 900 },
  ]) {
    const other = sdpa.rope(x, { scaling: { ...scaling, ...more }, offset: 500 }).data;
    assert.ok(largestError(other, plain) > 1e-3, JSON.stringify(more));
  }
  const said = sdpa.rope(x, {
    scaling: { ...scaling, betaFast: 32, betaSlow: 1, attentionFactor: 0.1 * Math.log(8) + 1, truncate: true },
    offset: 500,
  });
  assert.deepEqual(said.data, plain);
});

test("yarn's factor applies to the columns that turn, and to no other", () => {
  const x = random.tensor(3, 8);
  const scaling = { type: 'yarn', factor: 8, originalMaxPosition: 64, attentionFactor: 2 };
  const { data } = sdpa.rope(x, { scaling, rotaryDim: 4 });
  // Position 0.
  assert.deepEqual(
    data.slice(0, 8),
    x.data.slice(0, 8).map((value, d) => (d < 4 ? 2 * value : value)),
  );
});

test('llama3, as Llama 3.1', () => {
  const scaling = { type: 'llama3', factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPosition: 8192 };
  checkFrequencies(
    128,
    { base: 500000, scaling },
    {
      0: 1,
      1: 0.8146172338565447,
      28: 0.0032114459947525913,
      29: 0.00216657076350336,
      30: 0.001371893567761139,
      32: 0.0005248461609929551,
      34: 0.00017850781276799665,
      35: 9.556212353964687e-5,
      36: 7.784655273932453e-5,
      63: 3.0689259889145127e-7,
    },
  );
});

test('a factor of 1 scales nothing', () => {
  const x = random.tensor(2, 3, 32);
  const want = sdpa.rope(x, { offset: 77 });
  for (const scaling of [
    { type: 'linear', factor: 1 },
    { type: 'ntk', factor: 1 },
    { type: 'yarn', factor: 1, originalMaxPosition: 128 },
    { type: 'llama3', factor: 1, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPosition: 128 },
  ]) {
    assert.ok(largestError(sdpa.rope(x, { offset: 77, scaling }).data, want.data) <= 1e-6, scaling.type);
  }
});
