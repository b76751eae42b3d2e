// flash-attention 2's test of races (tests/test_flash_attn.py): the same call gives the same bits, called again and on any number of
// workers at once. 2 batch rows of 2 heads (there 60 of 4), 2 repeats (there 10 000).

import { test } from 'node:test';
import { loadVariant, VARIANT } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { cross, isFull, numbers } from './grids-sweep.mjs';

test('flash-attention 2: races', async () => {
  const settings = cross({
    lengths: [[1, 239], [239, 1], [3, 799], [799, 3], [1024, 128], ...[97, 128, 200, 256, 257, 384, 512, 768, 1024].map((n) => [n, n])], // prettier-ignore
    D: [32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256],
  });
  const start = process.hrtime.bigint();
  const all = await Promise.all([0, 1, 2, 3].map((threads) => loadVariant({ threads })));
  let calls = 0;
  for (const [n, { lengths, D }] of settings.entries()) {
    if (!isFull && n % 19 !== 0) continue;
    const { tensor, whole } = numbers(n + 1);
    const [L, S] = lengths;
    const [query, key, value] = [tensor(2, 2, L, D), tensor(2, 2, S, D), tensor(2, 2, S, D)];
    const options = {
      causal: n % 2 === 0,
      align: /** @type {const} */ ('lower-right'),
      returnLse: true,
      ...(n % 3 === 0 && { window: /** @type {[number, number]} */ ([whole(0, S - 1), whole(0, S - 1)]) }),
      ...(n % 5 === 0 && { dropout: { p: 0.17, seed: n } }),
    };
    const [sync] = all;
    const want = sync.attention(query, key, value, options);
    assertSameBits(sync.attention(query, key, value, options), want, JSON.stringify({ lengths, D }));
    const twice = all.flatMap((sdpa) => [0, 1].map(() => sdpa.attentionAsync(query, key, value, options)));
    for (const got of await Promise.all(twice)) assertSameBits(got, want, JSON.stringify({ lengths, D }));
    calls += 2 + twice.length;
  }
  for (const sdpa of all) sdpa.dispose();
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  console.log(
    `[   grid   ] ${`flash-attention 2, races, ${VARIANT}`.padEnd(48)} ${settings.length} settings ${calls} calls ${seconds.toFixed(1)} s`,
  );
});
