// What masks.* refuse, and that they read what they are given once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { masks } from 'sdpa';
import { assertThrows } from '../helpers/errors.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

/** @typedef {[action: () => unknown, code: string, message: RegExp]} Case */

const any = /** @type {any} */ (masks);
const mask = masks.causal(10);

/** @type {Record<string, Case[]>} */
const groups = {
  'a size that is no number of tokens': [
    [() => any.causal(), 'type', /causal rows must be a number, got undefined/],
    [() => any.causal('8'), 'type', /causal rows must be a number, got "8"/],
    [() => masks.causal(-1), 'option', /causal rows must be a whole number.*got -1/],
    [() => masks.causal(1.5), 'option', /causal rows.*got 1.5/],
    [() => masks.causal(NaN), 'option', /causal rows.*got NaN/],
    [() => masks.causal(2 ** 31), 'option', /causal rows.*between 0 and 2147483647, got 2147483648/],
    [() => masks.causal(4, -4), 'option', /causal columns.*got -4/],
    [() => any.window(4, null, [1, 1]), 'type', /window columns must be a number, got null/],
    [() => masks.longformer(-3, { window: 1 }), 'option', /longformer length.*got -3/],
    [() => masks.bigbird(Infinity), 'option', /bigbird length.*got Infinity/],
    [() => masks.swin({ height: 0, width: 8, windowSize: 4 }), 'option', /swin height.*got 0/],
  ],
  'a size whose tiles no memory has room for': [
    [() => masks.causal(2 ** 31 - 1), 'out-of-memory', /2147483647 x 2147483647 needs \d+ bytes/],
    [() => masks.causal(2 ** 21), 'out-of-memory', /2097152 x 2097152 needs 4294967296 bytes/],
    [
      () => masks.swin({ height: 2 ** 20, width: 2 ** 20, windowSize: 1 }),
      'out-of-memory',
      /needs 4398046511104 bytes/,
    ],
    [() => masks.bigbird(64, { heads: 2 ** 53 - 1 }), 'out-of-memory', /needs \d+ bytes/],
    [() => masks.bigbird(640, { heads: 2 ** 53 - 1 }), 'shape', /more than 2\^53 elements/],
    [() => masks.toDense(masks.causal(2 ** 17)), 'out-of-memory', /131072.* needs 17179869184 bytes/],
  ],
  'a position that is missing': [
    [
      () => masks.causal(3, 5),
      'align-required',
      /causal.*3 rows but 5 columns.*'lower-right'.*'upper-left'.*queryOffset/,
    ],
    [() => masks.causal(5, 3, {}), 'align-required', /5 rows but 3 columns/],
    [() => masks.window(3, 5, [1, 1]), 'align-required', /^window/],
    [() => masks.chunk(3, 5, 2), 'align-required', /^chunk/],
    [() => masks.prefix(3, 5, 2), 'align-required', /^prefix/],
    [() => masks.causal(3, 0), 'align-required', /3 rows but 0 columns/],
  ],
  'a position that is wrong': [
    [() => any.causal(3, 5, 'lower-right'), 'type', /options of causal must be an object, got "lower-right"/],
    [() => any.causal(3, 5, null), 'type', /options of causal must be an object, got null/],
    [() => any.causal(3, 5, { align: 'left' }), 'option', /align must be 'lower-right' or 'upper-left', got "left"/],
    [() => any.causal(3, 5, { align: 1 }), 'type', /align must be/],
    [() => any.causal(3, 5, { offset: 1 }), 'unknown-option', /causal has no option 'offset'/],
    [
      () => masks.causal(3, 5, { align: 'upper-left', queryOffset: 0 }),
      'option',
      /align and queryOffset both say where row 0 stands/,
    ],
    [() => masks.causal(3, 5, { queryOffset: 0.5 }), 'option', /queryOffset must be a whole number.*got 0.5/],
    [() => masks.causal(3, 5, { queryOffset: 2 ** 32 }), 'option', /queryOffset.*got 4294967296/],
    [() => any.causal(3, 5, { queryOffset: [1, 2] }), 'type', /queryOffset must be a number or an Int32Array/],
    [
      () => masks.prefix(3, 5, Int32Array.of(1, 2), { queryOffset: Int32Array.of(1, 2, 3) }),
      'shape',
      /queryOffset has 3 numbers but the batch is 2/,
    ],
  ],
  'a window, chunk or prefix that is wrong': [
    [() => any.window(5, 5), 'type', /window must be \[left, right\], got undefined/],
    [() => any.window(5, 5, 3), 'type', /window must be \[left, right\], got 3/],
    [() => any.window(5, 5, [3]), 'type', /window must be \[left, right\], got \[3\]/],
    [() => any.window(5, 5, ['1', 2]), 'type', /window must be two numbers, got \["1", 2\]/],
    [
      () => masks.window(5, 5, [1, -1]),
      'option',
      /window must be whole numbers, 0 or more, or Infinity, got \[1, -1\]/,
    ],
    [() => masks.window(5, 5, [1.5, 1]), 'option', /window must be whole.*got \[1.5, 1\]/],
    [() => masks.window(5, 5, [NaN, 1]), 'option', /window must be whole.*got \[NaN, 1\]/],
    [() => masks.window(5, 5, [-Infinity, 1]), 'option', /window must be whole.*got \[-Infinity, 1\]/],
    [() => masks.chunk(5, 5, 0), 'option', /chunk size.*1 or more, got 0/],
    [() => masks.chunk(5, 5, -2), 'option', /chunk size.*got -2/],
    [() => masks.chunk(5, 5, 1.5), 'option', /chunk size.*got 1.5/],
    [() => any.chunk(5, 5), 'type', /chunk size must be a number/],
    [() => masks.prefix(5, 5, -1), 'option', /prefix length.*got -1/],
    [() => any.prefix(5, 5), 'type', /prefix length must be a number/],
    [() => masks.prefix(5, 5, Int32Array.of(1, -2)), 'option', /prefix length\[1\].*got -2/],
  ],
  'documents that are wrong': [
    [
      () => any.documents(),
      'type',
      /documents takes an Int32Array of ids, \{ query, key \} or \{ lengths \}, got undefined/,
    ],
    [() => any.documents([0, 0, 1]), 'type', /documents takes an Int32Array/],
    [() => any.documents(new Float32Array(3)), 'type', /documents takes an Int32Array.*got a Float32Array/],
    [() => any.documents({ query: new Int32Array(3) }), 'type', /documents key must be an Int32Array.*got undefined/],
    [() => any.documents({ key: new Int32Array(3) }), 'type', /documents query must be an Int32Array/],
    [() => any.documents({ query: [1], key: [1] }), 'type', /documents query must be an Int32Array.*got \[1\]/],
    [() => any.documents({ ids: new Int32Array(3) }), 'unknown-option', /documents has no option 'ids'/],
    [() => any.documents({ lengths: [1], key: new Int32Array(1) }), 'option', /not both/],
    [() => any.documents({ lengths: 5 }), 'type', /documents lengths must be an array/],
    [() => masks.documents({ lengths: [3, -1] }), 'option', /documents lengths\[1\].*got -1/],
    [() => any.documents({ lengths: [3, '1'] }), 'type', /documents lengths\[1\] must be a number, got "1"/],
    [() => masks.documents({ lengths: [2 ** 30, 2 ** 30] }), 'option', /documents total length.*got 2147483648/],
  ],
  'a pattern that is wrong': [
    [() => any.longformer(5), 'type', /longformer window must be a number, got undefined/],
    [() => masks.longformer(5, { window: -1 }), 'option', /longformer window.*got -1/],
    [
      () => masks.longformer(5, { window: 1, globalTokens: [5] }),
      'option',
      /globalTokens\[0\].*between 0 and 4, got 5/,
    ],
    [() => any.longformer(5, { window: 1, globalTokens: 2 }), 'type', /globalTokens must be an array/],
    [() => any.longformer(5, { window: 1, globalTokens: [0, null] }), 'type', /globalTokens\[1\] must be a number/],
    [() => any.longformer(5, { window: 1, causal: 1 }), 'type', /longformer causal must be true or false, got 1/],
    [() => any.longformer(5, { window: 1, global: [0] }), 'unknown-option', /longformer has no option 'global'/],
    [() => masks.bigbird(500, { window: 2 }), 'option', /bigbird window must be an odd number of blocks, got 2/],
    [() => masks.bigbird(500, { window: 0 }), 'option', /bigbird window.*got 0/],
    [() => masks.bigbird(500, { blockSize: 0 }), 'option', /bigbird blockSize.*got 0/],
    [() => masks.bigbird(500, { randomBlocks: -1 }), 'option', /bigbird randomBlocks.*got -1/],
    [() => masks.bigbird(500, { globalBlocks: 0.5 }), 'option', /bigbird globalBlocks.*got 0.5/],
    [() => masks.bigbird(500, { seed: -1 }), 'option', /bigbird seed.*got -1/],
    [() => masks.bigbird(500, { seed: 2 ** 53 }), 'option', /bigbird seed.*got 9007199254740992/],
    [() => masks.bigbird(500, { heads: 0 }), 'option', /bigbird heads.*got 0/],
    [() => any.bigbird(500, { blocks: 2 }), 'unknown-option', /bigbird has no option 'blocks'/],
    [() => any.swin(), 'type', /swin height must be a number, got undefined/],
    [() => any.swin({ height: 8, width: 8 }), 'type', /swin windowSize must be a number/],
    [() => masks.swin({ height: 8, width: 8, windowSize: 0 }), 'option', /swin windowSize.*got 0/],
    [
      () => masks.swin({ height: 8, width: 8, windowSize: 4, shift: 4 }),
      'option',
      /swin shift.*between 0 and 3, got 4/,
    ],
    [() => masks.swin({ height: 8, width: 8, windowSize: 4, shift: -1 }), 'option', /swin shift.*got -1/],
    [() => any.swin({ height: 8, width: 8, window: 4 }), 'unknown-option', /swin has no option 'window'/],
  ],
  'booleans that are wrong': [
    [() => any.fromDense(), 'type', /mask must be a tensor/],
    [() => any.fromDense(mask), 'type', /shape/],
    [() => masks.fromDense({ data: new Uint8Array(5), shape: [2, 2] }), 'shape', /5 elements.*\[2, 2\] needs 4/],
    [() => masks.fromDense({ data: new Uint8Array(4), shape: [4] }), 'shape', /2, 3 or 4 dimensions, got 1: \[4\]/],
    [() => masks.fromDense({ data: new Uint8Array(4), shape: [1, 1, 1, 2, 2] }), 'shape', /got 5/],
    [() => any.fromDense({ data: new Float32Array(4), shape: [2, 2] }), 'type', /must be boolean.*Float32Array/],
    [() => any.fromDense({ data: [1, 0, 0, 1], shape: [2, 2] }), 'type', /data\[0\] must be true or false, got 1/],
    [() => any.fromDense({ data: new Uint8Array(4), shape: [2, 2], dtype: 'float32' }), 'type', /dtype "float32"/],
  ],
  'something that is no mask, or masks that do not fit': [
    [() => any.and(), 'type', /and takes one mask or more/],
    [() => any.or(), 'type', /or takes one mask or more/],
    [() => any.and(mask, {}), 'type', /and takes masks made by masks\.\*, got a Object/],
    [() => any.or([mask, mask]), 'type', /or takes masks/],
    [() => any.not(), 'type', /not takes masks made by masks\.\*, got undefined/],
    [() => any.stats({ ...mask }), 'type', /stats takes masks/],
    [() => any.toDense(null), 'type', /toDense takes masks/],
    [() => masks.and(mask, masks.causal(11)), 'shape', /and takes masks of one size, got 10 x 10 and 11 x 11/],
    [() => masks.or(mask, mask, masks.causal(10, 11, { align: 'upper-left' })), 'shape', /10 x 10 and 10 x 11/],
    [
      () => {
        const of = (/** @type {number} */ batch) => masks.causal(10, 10, { queryOffset: new Int32Array(batch) });
        masks.and(of(2), mask, of(3));
      },
      'shape',
      /and takes masks with a batch of 1 or the same, got 2 and 3/,
    ],
    [
      () => masks.or(masks.bigbird(10, { heads: 3 }), masks.bigbird(10, { heads: 2 })),
      'shape',
      /or takes masks with a heads of 1 or the same, got 3 and 2/,
    ],
  ],
  'a cell that is not in the mask': [
    [() => mask.allows(10, 0), 'option', /row 10 is not in the mask: it has 10/],
    [() => mask.allows(0, -1), 'option', /column -1/],
    [() => mask.allows(0.5, 0), 'option', /row 0.5/],
    [() => any.causal(3).allows('0', 0), 'type', /row must be a number/],
    [() => mask.allows(0, 0, -1), 'option', /batch row -1/],
    [() => masks.causal(3, 3, { queryOffset: new Int32Array(2) }).allows(0, 0, 2), 'option', /batch row 2.*it has 2/],
    [() => masks.bigbird(10, { heads: 2 }).allows(0, 0, 0, 2), 'option', /head 2/],
  ],
};

for (const [what, cases] of Object.entries(groups)) {
  test(`refused: ${what}`, () => {
    for (const [action, code, message] of cases) assertThrows(action, code, message);
  });
}

/**
 * An object whose properties may be read once.
 * @param {Record<string, unknown>} properties
 */
function once(properties) {
  const object = {};
  const reads = /** @type {Record<string, number>} */ ({});
  for (const [name, value] of Object.entries(properties)) {
    reads[name] = 0;
    Object.defineProperty(object, name, { enumerable: true, get: () => (reads[name]++, value) });
  }
  return { object: /** @type {any} */ (object), reads };
}

test('what is given is read once', () => {
  const data = new Uint8Array(4).fill(1);
  const two = new Int32Array(2);
  for (const [properties, make] of /** @type {[Record<string, unknown>, (given: any) => unknown][]} */ ([
    [{ align: 'lower-right', queryOffset: undefined }, (given) => masks.causal(2, 3, given)],
    [{ align: undefined, queryOffset: two }, (given) => masks.prefix(2, 3, 1, given)],
    [{ query: two, key: two, lengths: undefined }, (given) => masks.documents(given)],
    [{ query: undefined, key: undefined, lengths: [1, 2] }, (given) => masks.documents(given)],
    [{ window: 1, dilation: [1, 2], globalTokens: [0], causal: true }, (given) => masks.longformer(3, given)],
    [{ kernelSize: 2, dilation: 1, causal: [false] }, (given) => masks.neighborhood(3, given)],
    [
      {
        blockSize: 1,
        window: 1,
        randomBlocks: 1,
        globalBlocks: 0,
        extraTokens: 1,
        globalTokens: [0],
        seed: 1,
        heads: 2,
      },
      (given) => masks.bigbird(3, given),
    ],
    [{ height: 4, width: 4, windowSize: 2, shift: 1 }, (given) => masks.swin(given)],
    [{ data, shape: [2, 2], dtype: 'bool' }, (given) => masks.fromDense(given)],
  ])) {
    const { object, reads } = once(properties);
    make(object);
    assert.deepEqual(reads, Object.fromEntries(Object.keys(properties).map((name) => [name, 1])));
  }
});

test('an object that inherits from a mask is none', async () => {
  const sdpa = await loadVariant();
  const heir = Object.create(sdpa.masks.causal(3));
  const tensor = { data: new Float32Array(3), shape: [3, 1] };
  assertThrows(() => sdpa.masks.stats(heir), 'type', /made by masks/);
  assertThrows(() => sdpa.attention(tensor, tensor, tensor, { blockMask: heir }), 'type', /blockMask must be made by/);
});
