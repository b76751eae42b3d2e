// The slim entry: attention itself, and of the rest what it is given.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { onnxOps } from 'sdpa/onnx';
import { load } from 'sdpa/slim';
import * as parts from 'sdpa/slim/parts';
import { assertRejects, assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { allowRelaxedSimd, loadVariant, VARIANT } from '../helpers/sdpa.mjs';

if (VARIANT === 'relaxed') allowRelaxedSimd();

const require = createRequire(import.meta.url);
const wasm = new Uint8Array(await readFile(fileURLToPath(import.meta.resolve(`sdpa/wasm/sdpa.${VARIANT}.wasm`))));
const source = randomSource(11);
const [q, k, v] = [0, 1, 2].map(() => source.tensor(1, 2, 70, 8));
const image = source.tensor(1, 2, 64, 8);
const windows = { height: 8, width: 8, windowSize: 4 };
const [dt, state, skip] = [source.tensor(1, 2, 5), source.tensor(1, 1, 5, 4), source.tensor(1, 1, 5, 4)];
const a = { data: new Float32Array([-1, -0.5]), shape: [2] };
const xs = source.tensor(1, 2, 5, 3);

/**
 * A small call of each method that is in a part. What it gives is plain data.
 * @type {Record<string, Record<string, (sdpa: any) => unknown>>}
 */
const calls = {
  caches: {
    createKVCache: (sdpa) => decode(sdpa.createKVCache({ batch: 1, numKvHeads: 2, headDim: 8 })),
    createShardedKVCache: (sdpa) => decode(sdpa.createShardedKVCache({ batch: 1, numKvHeads: 2, headDim: 8 })),
  },
  weights: {
    attentionWeights: (sdpa) => sdpa.attentionWeights(q, k, { topK: 3 }),
    attentionWeightsAsync: (sdpa) => sdpa.attentionWeightsAsync(q, k, { topK: 3 }),
  },
  gradients: {
    attentionBackward: (sdpa) => sdpa.attentionBackward(q, k, v, given(sdpa)),
    attentionBackwardAsync: (sdpa) => sdpa.attentionBackwardAsync(q, k, v, given(sdpa)),
    gradientCheck: (sdpa) => sdpa.gradientCheck(q, k, v).passed,
  },
  layers: {
    multiHeadAttention: (sdpa) => sdpa.multiHeadAttention({ numHeads: 2, weights: layer }).forward(tokens),
    windowAttention2d: (sdpa) => sdpa.windowAttention2d(image, image, image, windows),
    windowAttention2dAsync: (sdpa) => sdpa.windowAttention2dAsync(image, image, image, windows),
  },
  linear: {
    linearAttention: (sdpa) => sdpa.linearAttention(q, k, v),
    linearAttentionBackward: (sdpa) => sdpa.linearAttentionBackward(q, k, v, { dOut: v }),
    gatedLinearAttention: (sdpa) => sdpa.gatedLinearAttention(q, k, v),
    gatedLinearAttentionBackward: (sdpa) => sdpa.gatedLinearAttentionBackward(q, k, v, { dOut: v }),
    ssd: (sdpa) => sdpa.ssd(xs, dt, a, state, skip),
    ssdBackward: (sdpa) => sdpa.ssdBackward(xs, dt, a, state, skip, { dOut: xs }),
  },
};

const tokens = source.tensor(1, 6, 16);
const layer = Object.fromEntries(
  ['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias'].map((name) => {
    const rows = name.startsWith('in') ? 48 : 16;
    return [name, name.endsWith('weight') ? source.tensor(rows, 16) : source.tensor(rows)];
  }),
);

/** @param {any} sdpa */
function given(sdpa) {
  const { out, lse } = sdpa.attention(q, k, v, { returnLse: true });
  return { out, lse, dOut: v };
}

/** @param {any} cache */
async function decode(cache) {
  try {
    await cache.append(k, v);
    return await cache.attend(q);
  } finally {
    cache.dispose();
  }
}

/** @type {any} */
let whole;
/** @type {any} */
let alone;
before(async () => {
  whole = await loadVariant();
  alone = await load({ wasm });
});
after(() => alone.dispose());

test('alone, it has attention itself with the bits of the default entry', async () => {
  const options = { causal: true, returnLse: true };
  const want = whole.attention(q, k, v, options);
  assert.deepEqual(alone.attention(q, k, v, options), want);
  assert.deepEqual(await alone.attentionAsync(q, k, v, options), want);
  assert.deepEqual(alone.merge([want, want]), whole.merge([want, want]));
  assert.deepEqual(alone.rope(q), whole.rope(q));
  assert.deepEqual(alone.sinusoidal(5, 8), whole.sinusoidal(5, 8));
  assert.deepEqual(alone.alibiSlopes(6), whole.alibiSlopes(6));
  const blockMask = alone.masks.causal(70);
  assert.deepEqual(alone.attention(q, k, v, { blockMask, returnLse: true }), want);
  assert.equal(alone.tensor([2, 3]).data.length, 6);
  assert.equal(alone.threads, 0);
});

test('every method of an instance is of the core or in a part', () => {
  const core =
    'attention attentionAsync merge rope sinusoidal alibiSlopes masks tensor memory dispose threads constructor'.split(
      ' ',
    );
  const inParts = Object.values(calls).flatMap((some) => Object.keys(some));
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(whole));
  assert.deepEqual(names.sort(), [...core, ...inParts].sort());
  assert.deepEqual(Object.keys(parts).sort(), [...Object.keys(calls), 'workers'].sort());
});

for (const [part, methods] of Object.entries(calls)) {
  describe(`part ${part}`, () => {
    for (const [name, call] of Object.entries(methods)) {
      test(`${name} names the part where it is missing`, async () => {
        const others = Object.values(parts).filter((one) => one.name !== part);
        const sdpa = await load({ wasm, threads: 0, parts: others });
        const text = new RegExp(`^${name} is in a part .*import \\{ ${part} \\} from 'sdpa/slim/parts'`);
        const ask = () => /** @type {any} */ (sdpa)[name]();
        if (name.endsWith('Async')) await assertRejects(ask(), 'unsupported', text);
        else assertThrows(ask, 'unsupported', text);
        assert.deepEqual(sdpa.attention(q, k, v), whole.attention(q, k, v));
        sdpa.dispose();
      });

      test(`${name} is that of the default entry where it is given`, async () => {
        const sdpa = await load({ wasm, threads: 0, parts: [/** @type {any} */ (parts)[part]] });
        assert.deepEqual(await call(sdpa), await call(whole));
        sdpa.dispose();
      });
    }
  });
}

test('part workers: asynchronous calls find workers', async () => {
  const sdpa = await load({ wasm, threads: 2, parts: [parts.workers] });
  assert.deepEqual(await sdpa.attentionAsync(q, k, v), whole.attention(q, k, v));
  assert.ok(sdpa.threads > 0);
  sdpa.dispose();
});

test('an ONNX operator that needs a part names it', () => {
  const inputs = { query: tokens, key: tokens, value: tokens };
  assertThrows(
    () => onnxOps(alone).linearAttention(inputs, { q_num_heads: 2, kv_num_heads: 2, update_rule: 'linear' }),
    'unsupported',
    /import \{ linear \} from 'sdpa\/slim\/parts'/,
  );
});

test('bad parts are refused by a rejection', async () => {
  for (const bad of [
    null,
    'caches',
    ['caches'],
    [undefined],
    [{}],
    [parts.caches, 5],
    Array.from({ length: 2 }),
    new Array(2),
    { caches: parts.caches },
    [parts],
  ]) {
    await assertRejects(
      load(/** @type {any} */ ({ wasm, parts: bad })),
      'type',
      /parts must be an array of what 'sdpa\/slim\/parts'/,
    );
  }
  const like = { name: 'caches', methods: { createKVCache: () => null } };
  await assertRejects(
    load(/** @type {any} */ ({ wasm, parts: [parts.caches, like] })),
    'type',
    /but parts\[1\] is of another copy of the package: .* both by import or both by require, of one version/,
  );
  await assertRejects(
    load(/** @type {any} */ ({ wasm, part: [] })),
    'unknown-option',
    /no option 'part'; the options are variant, wasm, threads, maxMemory, parts/,
  );
});

test('parts that come by require() are refused by a load that came by import, and the other way round', async () => {
  const text = /of another copy of the package/;
  const other = require('sdpa/slim/parts');
  await assertRejects(load({ wasm, parts: [other.caches] }), 'type', text);
  await assertRejects(require('sdpa/slim').load({ wasm, parts: [parts.workers] }), 'type', text);
  assert.deepEqual(Object.keys(other).sort(), Object.keys(parts).sort());
});

test('by require(), parts share their modules with the entry', async () => {
  const sdpa = await require('sdpa/slim').load({ wasm, parts: [require('sdpa/slim/parts').caches] });
  const [key, value] = [sdpa.tensor(k.shape), sdpa.tensor(v.shape)];
  key.data.set(k.data);
  value.data.set(v.data);
  const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 2, headDim: 8 });
  cache.append(key, value);
  const { out } = sdpa.attention(q, k, v, { causal: true });
  assert.deepEqual(cache.attend(q, { out: sdpa.tensor(q.shape) }).out.data, out.data);
  cache.dispose();
  sdpa.dispose();
});
