// Faults that linearAttention(), gatedLinearAttention() and ssd() must name, each before anything is allocated.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
after(() => sdpa.dispose());

/** @param {number[]} shape */
const t = (...shape) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(0.5), shape });
/** @param {number[]} shape */
const bool = (...shape) => ({ data: new Uint8Array(shape.reduce((a, b) => a * b, 1)).fill(1), shape });
const q = t(2, 4, 6, 3);
const k = t(2, 2, 6, 3);
const v = t(2, 2, 6, 5);

// What is wrong, the arguments, code, message.
// prettier-ignore
const shared = /** @type {[string, any[], string, RegExp][]} */ ([
  ['no query', [undefined, k, v], 'type', /query must be a tensor/],
  ['a bare array', [q, k.data, v], 'type', /key must be a tensor/],
  ['a query of rank 1', [t(4), k, v], 'shape', /query must have 2, 3 or 4 dimensions, got 1/],
  ['a key of another rank', [q, t(2, 6, 3), v], 'shape', /key must have 4 dimensions, as query has, got 3/],
  ['another batch', [q, t(1, 2, 6, 3), v], 'shape', /key batch is 1 but query batch is 2/],
  ['another batch of value', [q, k, t(3, 2, 6, 5)], 'shape', /value batch is 3/],
  ['another head size', [q, t(2, 2, 6, 4), v], 'shape', /key head size is 4 but query head size is 3/],
  ['another length', [q, k, t(2, 2, 7, 5)], 'shape', /value length is 7 but key length is 6/],
  ['other heads of value', [q, k, t(2, 1, 6, 5)], 'shape', /value number of heads is 1 but key number of heads is 2/],
  ['heads that are no multiple', [t(2, 3, 6, 3), k, v], 'shape', /query has 3 heads, which is not a multiple of the 2/],
  ['no heads', [t(2, 0, 6, 3), t(2, 0, 6, 3), t(2, 0, 6, 5)], 'shape', /query has 0 heads/],
  ['no columns', [t(2, 4, 6, 0), t(2, 2, 6, 0), v], 'shape', /query head size must be 1 or more/],
  ['no columns of value', [q, k, t(2, 2, 6, 0)], 'shape', /value head size must be 1 or more/],
  ['options that are none', [q, k, v, 7], 'type', /must be an object, got 7/],
  ['an unknown option', [q, k, v, { mask: bool(6) }], 'unknown-option', /no option 'mask'/],
  ['another layout', [q, k, v, { layout: 'lbhd' }], 'option', /layout must be 'bhld' or 'blhd'/],
  ['returnState as a number', [q, k, v, { returnState: 1 }], 'type', /returnState must be true or false/],
  ['a state that is no tensor', [q, k, v, { state: new Float32Array(4) }], 'type', /state must be a tensor/],
  ['a state in float16', [q, k, v, { state: { data: new Uint16Array(4), shape: [4], dtype: 'float16' } }], 'type', /state must be float32, got float16/],
]);

// prettier-ignore
const linear = /** @type {typeof shared} */ ([
  ...shared,
  ['causal as text', [q, k, v, { causal: 'yes' }], 'type', /causal must be true or false/],
  ['causal over other lengths', [t(2, 4, 5, 3), k, v, { causal: true }], 'shape', /query length is 5 but key length is 6/],
  ['eps as text', [q, k, v, { eps: '0' }], 'type', /eps must be a number/],
  ['an eps below 0', [q, k, v, { eps: -1 }], 'option', /eps must be 0 or more, got -1/],
  ['an eps of NaN', [q, k, v, { eps: NaN }], 'option', /eps must be finite/],
  ['lengths as an array', [q, k, v, { kvLengths: [6, 6] }], 'type', /kvLengths must be an Int32Array/],
  ['too few lengths', [q, k, v, { kvLengths: Int32Array.of(6) }], 'shape', /kvLengths has 1 numbers but the batch is 2/],
  ['a length beyond the keys', [q, k, v, { kvLengths: Int32Array.of(6, 7) }], 'option', /kvLengths\[1\] is 7 but the key length is 6/],
  ['a length below 0', [q, k, v, { kvLengths: Int32Array.of(-1, 6) }], 'option', /kvLengths\[0\] is -1/],
  ['a mask of floats', [q, k, v, { keyMask: t(2, 6) }], 'type', /keyMask must be boolean/],
  ['a mask of another length', [q, k, v, { keyMask: bool(2, 5) }], 'shape', /keyMask shape is \[2, 5\] but must be \[2, 6\] or \[6\]/],
  ['a mask of another batch', [q, k, v, { keyMask: bool(3, 6) }], 'shape', /keyMask shape is \[3, 6\]/],
  ['a mask with heads', [q, k, v, { keyMask: bool(2, 1, 6) }], 'shape', /keyMask shape/],
  ['a state without the sum', [q, k, v, { state: t(2, 2, 3, 5) }], 'shape', /state shape is \[2, 2, 3, 5\] but must be \[2, 2, 3, 6\]/],
  ['an option of the other', [q, k, v, { decay: t(2, 2, 6) }], 'unknown-option', /linearAttention has no option 'decay'/],
]);

// prettier-ignore
const gated = /** @type {typeof shared} */ ([
  ...shared,
  ['a layout that does not fit', [q, k, v, { layout: 'blhd' }], 'shape', /query length is 4 but key length is 2/],
  ['other lengths', [t(2, 4, 5, 3), k, v], 'shape', /query length is 5 but key length is 6/],
  ['another rule', [q, k, v, { rule: 'gated_delta' }], 'option', /rule must be 'linear' or 'gated' or 'delta' or 'gated-delta'/],
  ['a rule as a number', [q, k, v, { rule: 1 }], 'type', /rule must be/],
  ['gated without decay', [q, k, v, { rule: 'gated' }], 'option', /the rule 'gated' needs decay/],
  ['gated with beta', [q, k, v, { rule: 'gated', decay: t(2, 2, 6), beta: t(2, 2, 6) }], 'option', /the rule 'gated' takes no beta/],
  ['delta without beta', [q, k, v, { rule: 'delta' }], 'option', /the rule 'delta' needs beta/],
  ['linear with decay', [q, k, v, { rule: 'linear', decay: t(2, 2, 6) }], 'option', /the rule 'linear' takes no decay/],
  ['gated-delta with half of it', [q, k, v, { rule: 'gated-delta', decay: t(2, 2, 6) }], 'option', /needs beta/],
  ['a decay of the query heads', [q, k, v, { decay: t(2, 4, 6) }], 'shape', /decay shape is \[2, 4, 6\] but with this key it must be \[2, 2, 6\] or \[2, 2, 6, 3\]/],
  ['a decay of other columns', [q, k, v, { decay: t(2, 2, 6, 5) }], 'shape', /decay shape/],
  ['a beta with columns', [q, k, v, { beta: t(2, 2, 6, 3) }], 'shape', /beta shape is \[2, 2, 6, 3\] but with this key it must be \[2, 2, 6\] or \[2, 1, 6\]/],
  ['a boolean decay', [q, k, v, { decay: bool(2, 2, 6) }], 'type', /decay data must be/],
  ['a scale of NaN', [q, k, v, { scale: NaN }], 'option', /scale must be finite/],
  ['a scale as text', [q, k, v, { scale: '1' }], 'type', /scale must be a number/],
  ['a chunk of 0', [q, k, v, { chunkSize: 0 }], 'option', /chunkSize must be a whole number, 1 or more/],
  ['a fraction of a chunk', [q, k, v, { chunkSize: 1.5 }], 'option', /chunkSize/],
  ['a state of other columns', [q, k, v, { state: t(2, 2, 5, 3) }], 'shape', /state shape is \[2, 2, 5, 3\] but must be \[2, 2, 3, 5\]/],
  ['a state of the query heads', [q, k, v, { state: t(2, 4, 3, 5) }], 'shape', /state shape/],
]);

const x = t(2, 4, 6, 5);
const dt = t(2, 4, 6);
const a = new Float32Array(4);
const b = t(2, 2, 6, 3);
// prettier-ignore
const ssd = /** @type {typeof shared} */ ([
  ['no x', [undefined, dt, a, b, b], 'type', /x must be a tensor/],
  ['no dt', [x, undefined, a, b, b], 'type', /dt must be a tensor/],
  ['no a', [x, dt, undefined, b, b], 'type', /a must be/],
  ['dt with columns', [x, t(2, 4, 6, 5), a, b, b], 'shape', /dt shape is \[2, 4, 6, 5\] but with this x it must be \[2, 4, 6\]/],
  ['too few of a', [x, dt, new Float32Array(3), b, b], 'shape', /a has shape \[3\] but x has 4 heads/],
  ['an a for each batch', [x, dt, t(2, 4), b, b], 'shape', /a has shape \[2, 4\]/],
  ['too many of d', [x, dt, a, b, b, { d: new Float32Array(5) }], 'shape', /d has shape \[5\]/],
  ['b of another size than c', [x, dt, a, t(2, 2, 6, 4), b], 'shape', /b head size is 4 but c head size is 3/],
  ['other groups', [x, dt, a, t(2, 1, 6, 3), b], 'shape', /c number of groups is 2 but b number of groups is 1/],
  ['groups that do not divide', [x, dt, a, t(2, 3, 6, 3), t(2, 3, 6, 3)], 'shape', /x has 4 heads, which is not a multiple of the 3 groups/],
  ['another length', [x, dt, a, t(2, 2, 7, 3), t(2, 2, 7, 3)], 'shape', /x length is 6 but b length is 7/],
  ['another rank', [x, dt, a, t(2, 6, 3), b], 'shape', /b must have 4 dimensions, as c has/],
  ['an unknown option', [x, dt, a, b, b, { scale: 1 }], 'unknown-option', /ssd has no option 'scale'; the options are d, state/],
  ['a chunk of 0', [x, dt, a, b, b, { chunkSize: 0 }], 'option', /chunkSize/],
  ['a state of Mamba\'s order', [x, dt, a, b, b, { state: t(2, 4, 5, 3) }], 'shape', /state shape is \[2, 4, 5, 3\] but must be \[2, 4, 3, 5\]/],
  ['d as text', [x, dt, a, b, b, { d: 'one' }], 'type', /d must be/],
]);

const all = /** @type {const} */ ({ linearAttention: linear, gatedLinearAttention: gated, ssd });
for (const [name, faults] of Object.entries(all)) {
  const call = /** @type {(...args: any[]) => any} */ (sdpa[/** @type {keyof typeof all} */ (name)]).bind(sdpa);
  for (const [fault, args, code, message] of faults) {
    test(`${name}, ${fault}: code ${code}`, () => {
      const before = sdpa.memory();
      assertThrows(() => call(...args), code, message);
      assert.deepEqual(sdpa.memory(), before);
    });
  }
}

test('inputs that fit are computed after all that', () => {
  assert.equal(sdpa.linearAttention(q, k, v).out.data[0], 0.5);
  assert.equal(sdpa.gatedLinearAttention(q, k, v).out.shape.join(), '2,4,6,5');
  assert.equal(sdpa.ssd(x, dt, a, b, b).out.shape.join(), '2,4,6,5');
});

test('out of memory: nothing is changed, and the instance stays usable', async () => {
  const small = await loadVariant({ maxMemory: 2 ** 20 });
  const big = t(1, 1, 100000, 4);
  const { held } = small.memory();
  const error = assertThrows(
    () => small.gatedLinearAttention(big, big, big),
    'out-of-memory',
    /gatedLinearAttention needs/,
  );
  assert.ok(Number(error.needed) > 100000 * 16 * 4);
  assertThrows(() => small.linearAttention(big, big, big), 'out-of-memory', /linearAttention needs/);
  assert.equal(small.memory().held, held);
  assert.equal(small.linearAttention(q, k, v).out.data[0], 0.5);
  small.dispose();
  assertThrows(() => small.linearAttention(q, k, v), 'disposed', /disposed/);
  assertThrows(() => small.gatedLinearAttention(q, k, v), 'disposed', /disposed/);
  assertThrows(() => small.ssd(x, dt, a, b, b), 'disposed', /disposed/);
});

test('sizes beyond 2^53 are refused', () => {
  const empty = (/** @type {number[]} */ ...shape) => ({ data: new Float32Array(0), shape });
  const wide = 2 ** 24;
  assertThrows(
    () => sdpa.gatedLinearAttention(empty(1, 64, 0, wide), empty(1, 64, 0, wide), empty(1, 64, 0, wide)),
    'shape',
    /more than 2\^53 elements/,
  );
});

test('a getter that takes a tensor away while the options are read is found out', () => {
  const tensor = sdpa.tensor([2, 2, 6]);
  const options = {
    decay: tensor,
    get returnState() {
      tensor.dispose();
      return true;
    },
  };
  assertThrows(() => sdpa.gatedLinearAttention(q, k, v, options), 'disposed', /disposed/);
});
