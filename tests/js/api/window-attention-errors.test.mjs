// What windowAttention2d() refuses, and that it reads what it is given once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertRejects, assertThrows } from '../helpers/errors.mjs';
import { counting } from '../helpers/reads.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
const { tensor } = randomSource(5);
const x = tensor(1, 2, 12, 4);
const image = { height: 3, width: 4, windowSize: 2 };
const table = tensor(9, 2);

/** @type {[options: any, code: string, message: RegExp][]} */
const cases = [
  [undefined, 'type', /needs the option height/],
  [{ width: 4, windowSize: 2 }, 'type', /needs the option height/],
  [{ height: 3, windowSize: 2 }, 'type', /needs the option width/],
  [{ height: 3, width: 4 }, 'type', /needs the option windowSize/],
  [null, 'type', /options of windowAttention2d must be an object/],
  [
    { ...image, window_size: 2 },
    'unknown-option',
    /windowAttention2d has no option 'window_size'; did you mean 'windowSize'/,
  ],
  [{ ...image, causal: true }, 'unknown-option', /has no option 'causal'/],
  [{ ...image, height: 2.5 }, 'option', /height.*got 2.5/],
  [{ ...image, height: '3' }, 'type', /height must be a number/],
  [{ ...image, width: 0 }, 'option', /width.*got 0/],
  [{ ...image, height: 4 }, 'shape', /query length is 12 but height x width is 4 x 4 = 16/],
  [{ ...image, windowSize: 0 }, 'option', /windowSize.*got 0/],
  [{ ...image, windowSize: [2, 2, 2] }, 'option', /windowSize must be a number or \[rows, columns\], got \[2, 2, 2\]/],
  [{ ...image, windowSize: [2, -1] }, 'option', /windowSize\[1\].*got -1/],
  [{ ...image, windowSize: '2' }, 'type', /windowSize must be a number/],
  [{ ...image, shift: 2 }, 'option', /shift \[2, 2\] must be below windowSize \[2, 2\]/],
  [{ ...image, shift: [0, 2] }, 'option', /shift \[0, 2\] must be below/],
  [{ ...image, shift: -1 }, 'option', /shift.*got -1/],
  [{ ...image, relativeBias: tensor(9, 3) }, 'shape', /relativeBias must have shape \[9, 2\].*got \[9, 3\]/],
  [{ ...image, relativeBias: tensor(3, 3, 2) }, 'shape', /got \[3, 3, 2\]/],
  [{ ...image, windowSize: [2, 3], relativeBias: table }, 'shape', /shape \[15, 2\]/],
  [{ ...image, relativeBias: table.data }, 'type', /relativeBias must be a tensor/],
  [{ ...image, similarity: 'cos' }, 'option', /similarity must be 'dot' or 'cosine', got "cos"/],
  [{ ...image, similarity: 1 }, 'type', /similarity must be/],
  [{ ...image, similarity: 'cosine' }, 'option', /needs logitScale/],
  [{ ...image, similarity: 'cosine', logitScale: [1, 2], scale: 1 }, 'option', /scale is for similarity: 'dot'/],
  [{ ...image, logitScale: [1, 2] }, 'option', /logitScale is for similarity: 'cosine'/],
  [{ ...image, similarity: 'cosine', logitScale: [1] }, 'shape', /one number per query head, 2, got 1 numbers/],
  [{ ...image, similarity: 'cosine', logitScale: [1, '2'] }, 'type', /logitScale\[1\] must be a number/],
  [{ ...image, similarity: 'cosine', logitScale: 3 }, 'type', /logitScale must be/],
  [{ ...image, similarity: 'cosine', logitScale: { data: [1, 2], shape: [3, 1] } }, 'shape', /shape \[3, 1\] with 2/],
  [{ ...image, scale: Infinity }, 'option', /scale must be finite/],
  [{ ...image, softcap: -1 }, 'option', /softcap/],
  [{ ...image, layout: 'blhd' }, 'shape', /query length is 2 but height x width is 3 x 4 = 12/],
  [{ ...image, out: new Float32Array(3) }, 'shape', /out has 3 elements/],
];

test('options that do not fit', async () => {
  for (const [options, code, message] of cases) {
    assertThrows(() => sdpa.windowAttention2d(x, x, x, options), code, message);
    await assertRejects(sdpa.windowAttention2dAsync(x, x, x, options), code, message);
  }
});

test('tensors that do not fit', () => {
  const any = /** @type {any} */ (sdpa);
  assertThrows(() => any.windowAttention2d(x, x, undefined, image), 'type', /value must be a tensor/);
  assertThrows(
    () => any.windowAttention2d(x, tensor(1, 2, 11, 4), tensor(1, 2, 11, 4), image),
    'shape',
    /key length is 11/,
  );
  assertThrows(() => any.windowAttention2d(x, tensor(1, 3, 12, 4), x, image), 'shape', /heads/);
  const out = sdpa.tensor([1, 2, 12, 4]);
  assertThrows(() => sdpa.windowAttention2d(out, x, x, { ...image, out }), 'option', /out overlaps query/);
  out.dispose();
  assertThrows(() => sdpa.windowAttention2d(out, x, x, image), 'disposed', /disposed/);
});

test('an error changes nothing and leaves no memory behind', () => {
  const { held } = sdpa.memory();
  const out = new Float32Array(96).fill(7);
  assertThrows(() => sdpa.windowAttention2d(x, x, x, { ...image, out, shift: 5 }), 'option', /shift/);
  assert.ok(out.every((element) => element === 7));
  assert.equal(sdpa.memory().held, held);
});

test('more memory than there may be is an error before anything is written', async () => {
  const small = await loadVariant({ maxMemory: 2 ** 20 });
  const large = tensor(1, 2, 60 * 60, 32);
  const options = { height: 60, width: 60, windowSize: 7, out: new Float32Array(2 * 3600 * 32).fill(7) };
  const { held } = small.memory();
  assertThrows(() => small.windowAttention2d(large, large, large, options), 'out-of-memory', /bytes are allowed/);
  assert.ok(options.out.every((element) => element === 7));
  assert.equal(small.memory().held, held);
  small.dispose();
  assertThrows(() => small.windowAttention2d(x, x, x, image), 'disposed', /disposed/);
});

test('what is given is read once, and what was read counts', () => {
  const given = { ...image, shift: 1, relativeBias: table, similarity: 'cosine', logitScale: [1, 2], softcap: 3 };
  const want = sdpa.windowAttention2d(x, x, x, /** @type {any} */ (given)).out.data;
  const { object: options, reads } = counting(given);
  assert.deepEqual(sdpa.windowAttention2d(x, x, x, options).out.data, want);
  assert.deepEqual(reads, Object.fromEntries(Object.keys(given).map((name) => [name, 1])));

  // A getter that changes what has been read already.
  const bias = { data: table.data.slice(), shape: table.shape };
  const late = {
    ...given,
    relativeBias: bias,
    logitScale: {
      shape: [2],
      get data() {
        return [1, 2];
      },
    },
  };
  assert.deepEqual(sdpa.windowAttention2d(x, x, x, /** @type {any} */ (late)).out.data, want);
});
