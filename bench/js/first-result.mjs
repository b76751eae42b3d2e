/** Imports the package, loads a build, computes once, and prints how long each took: `node first-result.mjs VARIANT`. */

import { isMain } from '../../scripts/lib/exec.mjs';
import { allowRelaxedSimd } from './relaxed.mjs';

/** @param {'auto' | import('sdpa').Variant} variant */
async function main(variant) {
  if (variant === 'relaxed') allowRelaxedSimd();
  const shape = [1, 12, 128, 64];
  const query = { data: Float32Array.from({ length: 12 * 128 * 64 }, (_, i) => Math.sin(i)), shape };
  const start = performance.now();
  const { load } = await import('sdpa');
  const imported = performance.now();
  const sdpa = await load({ variant });
  const loaded = performance.now();
  sdpa.attention(query, query, query);
  const done = performance.now();
  const result = {
    chosen: sdpa.variant,
    importMs: imported - start,
    loadMs: loaded - imported,
    callMs: done - loaded,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

if (isMain(import.meta.url)) await main(/** @type {any} */ (process.argv[2]));
