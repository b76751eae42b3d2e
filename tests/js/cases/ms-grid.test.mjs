// MultiHeadAttention and GroupQueryAttention of com.microsoft: mixtures of their features against float64 references, every pair of
// values at least once.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { onnxOps } from 'sdpa/onnx';
import { loadVariant } from '../helpers/sdpa.mjs';
import { toTensor, valuesOf } from './case-files.mjs';
import { assertClose } from './compare.mjs';
import { roundTo } from './half-values.mjs';
import { allPairs, countPairs, drawMixtures } from './mixtures.mjs';
import { referenceGroupQuery, referenceMultiHead } from './ms-reference.mjs';
import { normal, uniform } from './random.mjs';

const DTYPES = ['float32', 'float16', 'bfloat16'];
const BIASES = ['none', '11', 'B1', '1H', 'BH'];
const SCALES = [undefined, 0, 0.3, -0.5];

const MHA = {
  form: ['separate', 'packed qkv', 'packed kv', 'heads first'],
  heads: [1, 2, 3],
  sizes: [
    [1, 1],
    [4, 4],
    [8, 3],
    [33, 33],
  ], // D, Dv
  lengths: [
    [1, 1],
    [1, 5],
    [4, 4],
    [4, 6],
    [3, 70],
  ], // L, S
  past: ['none', 'rows', 'empty', 'buffer', 'full buffer', 'beams'],
  bias: [false, true],
  padding: ['none', 'lengths', 'lengths and starts', 'keys', 'new keys', 'rows', 'dummy'],
  attentionBias: BIASES,
  unidirectional: [undefined, 0, 1],
  scale: SCALES,
  maskValue: [undefined, -Infinity, -50],
  dtype: DTYPES,
};

/** What cannot be together; a setting may hold two axes only. */
function mhaFits({ form, sizes, lengths, bias }) {
  const same = sizes === undefined || sizes[0] === sizes[1];
  if (form === 'packed qkv' && lengths && lengths[0] !== lengths[1]) return false;
  if (form === 'packed kv' && bias) return false;
  return form === undefined || form === 'separate' || same;
}

const GQA = {
  packed: [false, true],
  heads: [
    [1, 1],
    [2, 1],
    [4, 2],
    [3, 3],
  ], // query heads, key heads
  size: [8, 16, 48],
  step: [
    'prompt',
    'prompt with an empty past',
    'prompt over a past',
    'padded prompt',
    'token',
    'token in a buffer',
    'ragged tokens',
    'several tokens',
    'shared keys',
  ],
  rotary: ['none', 'halves', 'interleaved', 'positions', 'interleaved positions'],
  window: [-1, 1, 2, 5],
  causal: [undefined, 0, 1],
  attentionBias: BIASES,
  sink: ['none', 'smooth', 'head_sink', 'both'],
  softcap: [undefined, 1.5],
  scale: SCALES,
  output: [undefined, 0, 1, 2],
  dtype: DTYPES,
};

function gqaFits({ packed, size, step, rotary, window, causal }) {
  if (packed && step === 'shared keys') return false;
  if (size === 8 && rotary !== undefined && rotary !== 'none') return false;
  return !(causal === 0 && window !== undefined && window !== -1);
}

/** @type {Awaited<ReturnType<typeof loadVariant>>} */
let sdpa;
before(async () => {
  sdpa = await loadVariant();
});
after(() => sdpa.dispose());

describe('MultiHeadAttention of com.microsoft against its float64 reference', () => {
  const drawn = drawMixtures(MHA, { seed: 20240811, first: 200, fits: mhaFits });
  for (const past of MHA.past) {
    const settings = drawn.filter((setting) => setting.past === past);
    test(`agrees with past: ${past}, in ${settings.length} mixtures of the other settings`, () => {
      for (const setting of settings) {
        const { inputs, attributes } = buildMha(setting);
        const want = referenceMultiHead(inputs, attributes);
        checkOutputs(setting, onnxOps(sdpa).msMultiHeadAttention(tensorsOf(inputs), attributes), want, {
          output: 'computed',
          present_key: 'copied',
          present_value: 'copied',
          qk: 'computed',
        });
      }
    });
  }

  test('every pair of settings that can be met at least once', () => {
    assert.equal(countPairs(MHA, drawn), allPairs(MHA, mhaFits));
  });
});

describe('GroupQueryAttention of com.microsoft against its float64 reference', () => {
  const drawn = drawMixtures(GQA, { seed: 20240812, first: 200, fits: gqaFits });
  for (const step of GQA.step) {
    const settings = drawn.filter((setting) => setting.step === step);
    test(`agrees with step: ${step}, in ${settings.length} mixtures of the other settings`, () => {
      for (const setting of settings) {
        const { inputs, attributes } = buildGqa(setting);
        const want = referenceGroupQuery(inputs, attributes);
        const got = onnxOps(sdpa).msGroupQueryAttention(tensorsOf(inputs), attributes);
        assert.equal(
          got.output_qk !== undefined,
          (setting.output ?? 0) !== 0,
          'output_qk is there where it is asked for',
        );
        checkOutputs(setting, got, want, {
          output: 'computed',
          present_key: 'copied',
          present_value: 'copied',
          ...(setting.output && { output_qk: 'computed' }),
        });
      }
    });
  }

  test('every pair of settings that can be met at least once', () => {
    assert.equal(countPairs(GQA, drawn), allPairs(GQA, gqaFits));
  });
});

function tensorsOf(inputs) {
  return Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [name, toTensor(tensor)]));
}

function checkOutputs(setting, got, want, kinds) {
  const label = JSON.stringify(setting);
  for (const [name, kind] of Object.entries(kinds)) {
    assert.deepEqual(got[name].shape, want[name].shape, `${label} ${name}: shape`);
    assert.equal(got[name].dtype, setting.dtype, `${label} ${name}: dtype`);
    const bound = kind === 'copied' ? () => 0 : boundOf(setting.dtype);
    assertClose(`${label} ${name}`, valuesOf(got[name]), want[name].values, bound);
  }
}

/** float32 arithmetic, then for 16-bit types half a unit in the last place of the one rounding at the end. */
function boundOf(dtype) {
  const rounding = { float32: 0, float16: 2 ** -11, bfloat16: 2 ** -8 }[dtype];
  const smallest = dtype === 'float16' ? 2 ** -25 : 0;
  return (want) => 4e-6 + (rounding + 2e-6) * Math.abs(want) + smallest;
}

/** Makers of tensors whose numbers are as the type stores them. */
function makers(seed, dtype) {
  const next = uniform(seed + 1);
  const gauss = normal(next);
  const fill = (shape, make = gauss, type = dtype) => {
    const values = Float64Array.from({ length: shape.reduce((a, n) => a * n, 1) }, (_, n) => roundTo(type, make(n)));
    return { shape, dtype: type, values };
  };
  return { next, fill, integers: (shape, make, type = 'int32') => fill(shape, make, type) };
}

function buildMha(setting) {
  const { seed, form, heads, sizes, lengths, past, padding, unidirectional, scale, maskValue, dtype } = setting;
  const { next, fill, integers } = makers(seed, dtype);
  const beams = past === 'beams' ? 2 : 1;
  const batch = 2 * beams;
  const [d, dv] = sizes;
  const [rows, fresh] = lengths;
  const inLine = (length, size) => fill([batch, length, heads * size]);

  const inputs = {};
  if (form === 'packed qkv') inputs.query = fill([batch, rows, heads, 3, d]);
  else inputs.query = inLine(rows, d);
  if (form === 'packed kv') inputs.key = fill([batch, fresh, heads, 2, d]);
  if (form === 'separate') Object.assign(inputs, { key: inLine(fresh, d), value: inLine(fresh, dv) });
  if (form === 'heads first') {
    Object.assign(inputs, { key: fill([batch, heads, fresh, d]), value: fill([batch, heads, fresh, d]) });
  }
  if (setting.bias) inputs.bias = fill([2 * heads * d + heads * dv]);

  const kept = { none: 0, empty: 0 }[past] ?? 3;
  const capacity = { empty: 0, rows: kept, 'full buffer': kept + fresh }[past] ?? kept + fresh + 2;
  if (past !== 'none') {
    inputs.past_key = fill([batch, heads, capacity, d]);
    inputs.past_value = fill([batch, heads, capacity, dv]);
  }
  if (past === 'buffer' || past === 'full buffer' || past === 'beams') {
    inputs.past_sequence_length = integers([1], () => kept);
  }
  if (past === 'beams') {
    // What lies behind the rows in use is not looked at.
    inputs.cache_indirection = integers([2, beams, capacity], (n) =>
      n % capacity < kept ? Math.floor(next() * beams) : 99,
    );
  }

  // Key 0 always takes part: that rows without a key are normal rows is another test's matter.
  const total = kept + fresh;
  const shows = (width) => (n) => (n % width === 0 ? 2 : Math.floor(next() * 3) - 1);
  const masks = {
    lengths: () => integers([batch], () => 1 + Math.floor(next() * (total + 2))),
    'lengths and starts': () => integers([3 * batch + 2], () => 1 + Math.floor(next() * total)),
    keys: () => integers([batch, total], shows(total)),
    'new keys': () => integers([batch, fresh], shows(fresh)),
    rows: () => integers([batch, rows, total], shows(total)),
    dummy: () => integers([batch, 1], () => (total === 1 ? 1 : 0)),
  };
  if (padding !== 'none') inputs.key_padding_mask = masks[padding]();
  addAttentionBias(inputs, setting, { batch, heads, rows, total }, fill);
  const attributes = defined({ num_heads: heads, unidirectional, scale, mask_filter_value: maskValue });
  return { inputs, attributes };
}

function buildGqa(setting) {
  const { seed, packed, heads, size, step, rotary, sink, dtype } = setting;
  const { next, fill, integers } = makers(seed, dtype);
  const [hq, hkv] = heads;
  // Rows of the query, of the past's tensor, and keys of each sequence.
  const { rows, held, lengths } = {
    prompt: { rows: 5, held: undefined, lengths: [5, 5] },
    'prompt with an empty past': { rows: 5, held: 0, lengths: [5, 5] },
    'prompt over a past': { rows: 5, held: 8, lengths: [5, 5] },
    'padded prompt': { rows: 5, held: 0, lengths: [2, 5] },
    token: { rows: 1, held: 6, lengths: [7, 7] },
    'token in a buffer': { rows: 1, held: 9, lengths: [7, 7] },
    'ragged tokens': { rows: 1, held: 9, lengths: [1, 8] },
    'several tokens': { rows: 3, held: 4, lengths: [7] },
    'shared keys': { rows: 1, held: 7, lengths: [7, 4] },
  }[step];
  const batch = lengths.length;
  const fresh = step === 'shared keys' ? 0 : rows;
  const total = Math.max(...lengths);

  const inputs = packed
    ? { query: fill([batch, rows, (hq + 2 * hkv) * size]) }
    : {
        query: fill([batch, rows, hq * size]),
        key: fill([batch, fresh, hkv * size]),
        value: fill([batch, fresh, hkv * size]),
      };
  if (held !== undefined) {
    inputs.past_key = fill([batch, hkv, held, size]);
    inputs.past_value = fill([batch, hkv, held, size]);
  }
  inputs.seqlens_k = integers([batch], (b) => lengths[b] - 1);
  inputs.total_sequence_length = integers([], () => total);
  if (rotary !== 'none') {
    // Any numbers: a table of angles is not asked for.
    const pairs = size === 48 ? 16 : 8;
    inputs.cos_cache = fill([total + 6, pairs]);
    inputs.sin_cache = fill([total + 6, pairs]);
  }
  if (rotary.endsWith('positions')) {
    const most = rows === total ? 6 : total + 6;
    inputs.position_ids = integers([batch, rows], () => Math.floor(next() * most), 'int64');
  }
  addAttentionBias(inputs, setting, { batch, heads: hq, rows, total }, fill);
  if (sink === 'head_sink' || sink === 'both') inputs.head_sink = fill([hq]);

  const attributes = defined({
    num_heads: hq,
    kv_num_heads: hkv,
    do_rotary: rotary === 'none' ? undefined : 1,
    rotary_interleaved: rotary.startsWith('interleaved') ? 1 : undefined,
    local_window_size: setting.window,
    causal: setting.causal,
    smooth_softmax: sink === 'smooth' || sink === 'both' ? 1 : undefined,
    softcap: setting.softcap,
    scale: setting.scale,
    qk_output: setting.output,
  });
  return { inputs, attributes };
}

function addAttentionBias(inputs, { attentionBias }, { batch, heads, rows, total }, fill) {
  if (attentionBias === 'none') return;
  const [b, h] = attentionBias;
  inputs.attention_bias = fill([b === 'B' ? batch : 1, h === 'H' ? heads : 1, rows, total]);
}

function defined(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}
