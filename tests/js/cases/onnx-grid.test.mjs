// The operator's features against each other: settings drawn from a seeded generator until every pair of values has met,
// each compared with the float64 reference of the operator.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { onnxOps } from 'sdpa/onnx';
import { loadVariant } from '../helpers/sdpa.mjs';
import { toTensor, valuesOf } from './case-files.mjs';
import { assertClose } from './compare.mjs';
import { isHalf, roundTo } from './half-values.mjs';
import { allPairs, countPairs, drawMixtures } from './mixtures.mjs';
import { referenceAttention } from './onnx-reference.mjs';
import { normal, uniform } from './random.mjs';

const MASK_SHAPES = ['T', 'LT', '1T', 'HLT', 'H1T', 'BHLT', 'B11T', 'B1LT', '1HLT', 'shorter'];

/** Every axis of the grid and its values. */
const AXES = {
  rank: [3, 4],
  heads: [
    [2, 2],
    [4, 2],
    [3, 1],
    [1, 1],
  ], // query heads, key heads
  sizes: [
    [1, 1],
    [4, 4],
    [8, 3],
    [5, 7],
    [33, 16],
  ], // D, Dv
  lengths: [
    [1, 1],
    [1, 9],
    [4, 6],
    [6, 4],
    [5, 70],
  ], // L, S
  cache: ['none', 'past', 'empty past', 'nonpad', 'nonpad with an empty row'],
  mask: ['none', ...MASK_SHAPES.flatMap((shape) => [`bool ${shape}`, `float ${shape}`])],
  causal: [0, 1],
  window: [
    [-1, -1],
    [0, -1],
    [2, -1],
    [-1, 0],
    [-1, 1],
    [1, 2],
    [0, 0],
    [100, 3],
  ],
  scale: [undefined, 0.3, 0, -0.5],
  softcap: [undefined, 1.5],
  mode: [undefined, 0, 1, 2, 3],
  dtype: ['float32', 'float16', 'bfloat16'],
};

/** @type {Awaited<ReturnType<typeof loadVariant>>} */
let sdpa;
before(async () => {
  sdpa = await loadVariant();
});
after(() => sdpa.dispose());

describe('ONNX Attention against its float64 reference', () => {
  const drawn = drawMixtures(AXES, { seed: 20240607, first: 300 });
  for (const mask of AXES.mask) {
    const settings = drawn.filter((setting) => setting.mask === mask);
    test(`agrees with mask: ${mask}, in ${settings.length} mixtures of the other settings`, () => {
      assert.ok(settings.length > 0);
      for (const setting of settings) check(setting);
    });
  }

  test('every pair of settings met at least once', () => {
    assert.equal(countPairs(AXES, drawn), allPairs(AXES));
  });
});

function check(setting) {
  const { inputs, attributes } = build(setting);
  const want = referenceAttention(inputs, attributes);
  const tensors = Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [name, toTensor(tensor)]));
  const got = onnxOps(sdpa).attention(tensors, attributes);

  const label = JSON.stringify(setting);
  for (const name of ['Y', 'present_key', 'present_value', 'qk_matmul_output']) {
    assert.deepEqual(got[name].shape, want[name].shape, `${label} ${name}: shape`);
    assert.equal(got[name].dtype, setting.dtype, `${label} ${name}: dtype`);
    const isCopy = name.startsWith('present');
    assertClose(`${label} ${name}`, valuesOf(got[name]), want[name].values, isCopy ? () => 0 : boundOf(setting.dtype));
  }
}

/** float32 arithmetic, then for 16-bit types half a unit in the last place of the one rounding at the end. */
function boundOf(dtype) {
  const rounding = { float32: 0, float16: 2 ** -11, bfloat16: 2 ** -8 }[dtype];
  const smallest = dtype === 'float16' ? 2 ** -25 : 0;
  return (want) => 3e-6 + (rounding + 2e-6) * Math.abs(want) + smallest;
}

/** Inputs and attributes of one setting: unit-normal numbers, as the type stores them. */
function build(setting) {
  const { seed, rank, heads, sizes, lengths, cache, causal, window, scale, softcap, mode, dtype } = setting;
  const next = uniform(seed);
  const gauss = normal(next);
  const [batch, [hq, hkv], [d, dv], [rows, fresh]] = [2, heads, sizes, lengths];
  const fill = (shape, make = gauss, type = dtype) => ({
    shape,
    dtype: type,
    values: Float64Array.from({ length: shape.reduce((a, n) => a * n, 1) }, () => roundTo(type, make())),
  });
  const operand = (h, length, size) => fill(rank === 4 ? [batch, h, length, size] : [batch, length, h * size]);

  const inputs = { Q: operand(hq, rows, d), K: operand(hkv, fresh, d), V: operand(hkv, fresh, dv) };
  const past = { past: 3, 'empty past': 0 }[cache];
  if (past !== undefined) {
    inputs.past_key = fill([batch, hkv, past, d]);
    inputs.past_value = fill([batch, hkv, past, dv]);
  }
  const total = fresh + (past ?? 0);
  if (cache.startsWith('nonpad')) {
    const first = cache === 'nonpad' ? Math.ceil(fresh / 2) : 0;
    inputs.nonpad_kv_seqlen = { shape: [batch], dtype: 'int64', values: Float64Array.of(first, fresh) };
  }
  const mask = buildMask(setting, { batch, hq, rows, total }, fill, next, gauss);
  if (mask) inputs.attn_mask = mask;

  const attributes = { is_causal: causal, left_window_size: window[0], right_window_size: window[1] };
  if (rank === 3) Object.assign(attributes, { q_num_heads: hq, kv_num_heads: hkv });
  if (scale !== undefined) attributes.scale = scale;
  if (softcap !== undefined) attributes.softcap = softcap;
  if (mode !== undefined) attributes.qk_matmul_output_mode = mode;
  return { inputs, attributes };
}

function buildMask({ mask, dtype }, { batch, hq, rows, total }, fill, next, gauss) {
  if (mask === 'none') return undefined;
  const [maskType, maskShape] = mask.split(' ');
  const extents = { B: batch, H: hq, L: rows, T: total, 1: 1 };
  const shape = maskShape === 'shorter' ? [rows, Math.ceil(total / 2)] : [...maskShape].map((axis) => extents[axis]);
  if (maskType === 'bool') return fill(shape, () => Number(next() < 0.6), 'bool');
  return fill(shape, () => (next() < 0.2 ? -Infinity : gauss()), dtype);
}

// A half type that the table above forgot would compare with no rounding at all.
assert.deepEqual(AXES.dtype.filter(isHalf), ['float16', 'bfloat16']);
