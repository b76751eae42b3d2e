// Faults that rope() must name, each before anything is changed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();

const x = () => ({ data: Float32Array.from({ length: 48 }, (_, i) => i), shape: [2, 2, 3, 4] });
const other = await loadVariant();
const elsewhere = other.tensor([2, 2, 3, 4]);
const wrongShape = sdpa.tensor([2, 2, 4, 3]);
const wrongType = sdpa.tensor([2, 2, 3, 4], 'float16');
const llama3 = { type: 'llama3', factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPosition: 8192 };
const yarn = { type: 'yarn', factor: 8, originalMaxPosition: 8192 };

// What is wrong, x, options, code, message.
// prettier-ignore
const faults = /** @type {[string, any, any, string, RegExp][]} */ ([
  ['x is missing', undefined, {}, 'type', /x must be a tensor/],
  ['x is a bare array', new Float32Array(4), {}, 'type', /x must be a tensor/],
  ['x is float64', { data: new Float64Array(4), shape: [1, 4] }, {}, 'type', /x data must be a Float32Array/],
  ['x has one dimension', { data: new Float32Array(4), shape: [4] }, {}, 'shape', /x must have 2, 3 or 4 dimensions, got 1/],
  ['x has five dimensions', { data: new Float32Array(4), shape: [1, 1, 1, 1, 4] }, {}, 'shape', /got 5/],
  ['x does not fill its shape', { data: new Float32Array(5), shape: [1, 4] }, {}, 'shape', /x data has 5 elements.*needs 4/],
  ['x has heads of no size', { data: new Float32Array(0), shape: [3, 0] }, {}, 'shape', /head size of x/],
  ['the options are no object', x(), 'half', 'type', /options of rope must be an object/],
  ['an unknown option', x(), { theta: 1 }, 'unknown-option', /rope has no option 'theta'.*base, pairing/],
  ['an option in another spelling', x(), { rotary_dim: 4 }, 'unknown-option', /did you mean 'rotaryDim'/],
  ['a base of text', x(), { base: '10000' }, 'type', /base must be a number/],
  ['a base of 0', x(), { base: 0 }, 'option', /base must be more than 0, got 0/],
  ['a base of NaN', x(), { base: NaN }, 'option', /base must be finite/],
  ['another pairing', x(), { pairing: 'gptj' }, 'option', /pairing must be 'half' or 'interleaved', got "gptj"/],
  ['an odd rotaryDim', x(), { rotaryDim: 3 }, 'option', /rotaryDim must be even and at most the head size 4, got 3/],
  ['a rotaryDim beyond the head', x(), { rotaryDim: 6 }, 'option', /at most the head size 4, got 6/],
  ['a rotaryDim of 0', x(), { rotaryDim: 0 }, 'option', /rotaryDim must be a whole number, 1 or more/],
  ['an odd head without rotaryDim', { data: new Float32Array(5), shape: [1, 5] }, {}, 'option', /rotaryDim must be even and at most the head size 5, got 5/],
  ['inverse as a number', x(), { inverse: 1 }, 'type', /inverse must be true or false/],
  ['another layout', x(), { layout: 'lbhd' }, 'option', /layout must be 'bhld' or 'blhd'/],
  ['positions and offset', x(), { positions: new Int32Array(3), offset: 1 }, 'option', /positions and offset/],
  ['positions as numbers', x(), { positions: [0, 1, 2] }, 'type', /positions must be an Int32Array/],
  ['positions as floats', x(), { positions: { data: new Float32Array(3), shape: [3] } }, 'type', /positions must be an Int32Array/],
  ['too few positions', x(), { positions: new Int32Array(2) }, 'shape', /positions has 2 numbers.*\[3\].*\[2, 3\]/],
  ['positions per head', x(), { positions: new Int32Array(12) }, 'shape', /positions has 12 numbers/],
  ['positions in another shape', x(), { positions: { data: new Int32Array(6), shape: [3, 2] } }, 'shape', /positions has shape \[3, 2\]/],
  ['positions of rank 3', x(), { positions: { data: new Int32Array(6), shape: [2, 1, 3] } }, 'shape', /positions has shape \[2, 1, 3\]/],
  ['positions that do not fill their shape', x(), { positions: { data: new Int32Array(5), shape: [2, 3] } }, 'shape', /positions has 5 numbers but its shape is \[2, 3\]/],
  ['an offset of text', x(), { offset: '1' }, 'type', /offset must be a number or an Int32Array/],
  ['a fraction as offset', x(), { offset: 0.5 }, 'option', /offset must be a whole number, got 0.5/],
  ['offsets for another batch', x(), { offset: new Int32Array(3) }, 'shape', /offset has 3 numbers but the batch is 2/],
  ['offsets as floats', x(), { offset: new Float32Array(2) }, 'type', /offset must be a number or an Int32Array/],
  ['out of another type', x(), { out: new Float64Array(48) }, 'type', /out must be a Float32Array or a tensor/],
  ['out too short', x(), { out: new Float32Array(47) }, 'shape', /out has 47 elements.*48/],
  ['out as bits', x(), { out: new Uint16Array(48) }, 'type', /out must be a Float32Array/],
  ['out as a plain tensor', x(), { out: { data: new Float32Array(48), shape: [2, 2, 3, 4] } }, 'type', /out must be/],
  ['out of another instance', x(), { out: elsewhere }, 'option', /out is a tensor of another sdpa instance/],
  ['out of another shape', x(), { out: wrongShape }, 'shape', /out shape is \[2, 2, 4, 3\]/],
  ['out of a 16-bit type', x(), { out: wrongType }, 'type', /out is a float16 tensor but x is float32/],
  ['scaling of text', x(), { scaling: 'yarn' }, 'type', /options of scaling must be an object/],
  ['scaling without a type', x(), { scaling: { factor: 2 } }, 'type', /scaling.type must be 'linear'/],
  ['another type of scaling', x(), { scaling: { type: 'dynamic', factor: 2 } }, 'option', /scaling.type must be.*got "dynamic"/],
  ['scaling without a factor', x(), { scaling: { type: 'ntk' } }, 'type', /scaling of type 'ntk' needs factor/],
  ['a factor of 0', x(), { scaling: { type: 'linear', factor: 0 } }, 'option', /scaling.factor must be more than 0, got 0/],
  ['a factor of text', x(), { scaling: { type: 'linear', factor: '2' } }, 'type', /scaling.factor must be a number/],
  ['an unknown field', x(), { scaling: { type: 'linear', factor: 2, original: 1 } }, 'unknown-option', /scaling has no option 'original'/],
  ['a field of another type', x(), { scaling: { type: 'linear', factor: 2, betaFast: 1 } }, 'unknown-option', /scaling of type 'linear' has no field 'betaFast'; it has factor/],
  ['yarn without its length', x(), { scaling: { type: 'yarn', factor: 2 } }, 'type', /needs originalMaxPosition/],
  ['yarn with a factor below 1', x(), { scaling: { ...yarn, factor: 0.5 } }, 'option', /scaling.factor must be 1 or more/],
  ['yarn with its bounds crossed', x(), { scaling: { ...yarn, betaFast: 1, betaSlow: 32 } }, 'option', /betaSlow must be less than scaling.betaFast, got 32 and 1/],
  ['yarn with a base of 1', x(), { base: 1, scaling: yarn }, 'option', /base must be more than 1/],
  ['yarn with a number for truncate', x(), { scaling: { ...yarn, truncate: 0 } }, 'type', /scaling.truncate must be true or false/],
  ['llama3 without a field', x(), { scaling: { ...llama3, lowFreqFactor: undefined } }, 'type', /needs lowFreqFactor/],
  ['llama3 with its bounds equal', x(), { scaling: { ...llama3, lowFreqFactor: 4 } }, 'option', /lowFreqFactor must be less than scaling.highFreqFactor, got 4 and 4/],
]);

for (const [fault, tensor, options, code, message] of faults) {
  test(`${fault}: code ${code}`, () => {
    const before = tensor?.data?.slice();
    assertThrows(() => sdpa.rope(tensor, options), code, message);
    if (before) assert.deepEqual(tensor.data, before);
    if (options.out?.data ?? options.out) assert.ok((options.out.data ?? options.out).every((value) => value === 0));
    assert.equal(sdpa.rope(x()).data.length, 48, 'the instance goes on');
  });
}

test('a tensor and an instance that were disposed of', async () => {
  const gone = sdpa.tensor([2, 4]);
  gone.dispose();
  assertThrows(() => sdpa.rope(gone), 'disposed', /disposed/);
  assertThrows(() => sdpa.rope({ data: new Float32Array(8), shape: [2, 4] }, { out: gone }), 'disposed', /disposed/);
  const closed = await loadVariant();
  closed.dispose();
  assertThrows(() => closed.rope(x()), 'disposed', /disposed/);
});

test('a detached buffer', () => {
  const gone = new Float32Array(8);
  structuredClone(gone, { transfer: [gone.buffer] });
  assertThrows(
    () => sdpa.rope({ data: gone, shape: [2, 4] }),
    'type',
    /x data is empty because its buffer is detached/,
  );
});
