// Many instances at once, and memories that grow while they are used.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../js/helpers/reference.mjs';
import { loadVariant, resident } from '../js/helpers/sdpa.mjs';
import { assertSameBits } from '../js/helpers/workers.mjs';

const random = randomSource(9);

test('twenty instances with a worker each compute at the same time, and are gone one by one', async () => {
  const instances = await Promise.all(Array.from({ length: 20 }, () => loadVariant({ threads: 1 })));
  const x = random.tensor(2, 300, 32);
  const want = instances[0].attention(x, x, x, { causal: true });
  for (let left = instances.length; left > 0; left -= 4) {
    const calls = instances.slice(0, left).map(async (sdpa) => {
      const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 2, headDim: 32 });
      cache.append(x, x);
      const [whole, ...others] = await Promise.all(
        Array.from({ length: 3 }, () => sdpa.attentionAsync(x, x, x, { causal: true })),
      );
      for (const got of [whole, ...others, cache.attend(x)]) assertSameBits(got, want);
      cache.dispose();
    });
    await Promise.all(calls);
    for (const sdpa of instances.slice(left - 4, left)) sdpa.dispose();
  }
});

test('tensors, caches and calls that run keep their numbers while the memory grows to a gigabyte', async () => {
  const sdpa = await loadVariant({ threads: 2 });
  const x = random.tensor(1, 2, 500, 32);
  const kept = resident(sdpa, x);
  const out = sdpa.tensor(x.shape);
  const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 2, headDim: 32, pageSize: 16, capacity: 16 });
  const want = sdpa.attention(x, x, x, { causal: true });
  const { wasm, held } = sdpa.memory();
  const fillers = [];
  let growths = 0;
  let before = wasm;
  while (sdpa.memory().wasm < 2 ** 30) {
    const call = sdpa.attentionAsync(kept, x, kept, { causal: true, out });
    cache.append(kept, x);
    fillers.push(sdpa.tensor([10_000_000 + fillers.length]));
    assert.deepEqual(kept.data, x.data);
    assertSameBits(cache.attend(x), want);
    await call;
    assert.deepEqual(out.data, want.out.data);
    out.data.fill(0);
    cache.reset();
    if (sdpa.memory().wasm > before) growths++;
    before = sdpa.memory().wasm;
  }
  assert.ok(growths > 10, `${growths} growths`);
  for (const filler of fillers) filler.dispose();
  cache.dispose();
  assertSameBits(sdpa.attention(kept, kept, kept, { causal: true }), want);
  kept.dispose();
  out.dispose();
  assert.ok(sdpa.memory().held < held);
  sdpa.dispose();
});
