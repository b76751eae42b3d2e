/** The wasm builds as the JavaScript carries them: one LZMA stream of all, and the module that unpacks it. */

import { spawnSync } from 'node:child_process';
import { unpackBuild } from '../../web/unpack.js';

/**
 * One behind the other: what unpacks a build has to unpack those before it. The first is the one that most engines take, and the
 * second differs from it in little.
 */
const ORDER = /** @type {const} */ (['relaxed', 'simd', 'scalar']);

/** The format that src/unpack/unpack.cpp reads. The window holds all builds; the rest is liblzma's most thorough search. */
const LZMA = `
import lzma, sys
filter = dict(id=lzma.FILTER_LZMA1, preset=9 | lzma.PRESET_EXTREME, lc=3, lp=0, pb=0, dict_size=1 << 24, nice_len=273, depth=1000)
sys.stdout.buffer.write(lzma.compress(sys.stdin.buffer.read(), format=lzma.FORMAT_RAW, filters=[filter]))
`;

/**
 * @param {import('./wasm.mjs').WasmBuilds} builds
 * @returns {import('../../web/unpack.js').Embedded}
 */
export function packBuilds({ wasm, unpacker }) {
  const { status, error, stdout, stderr } = spawnSync('python3', ['-c', LZMA], {
    input: Buffer.concat(ORDER.map((variant) => wasm[variant])),
    maxBuffer: 1 << 26,
  });
  if (status !== 0) throw new Error(`python3 could not pack the builds (it needs its lzma module): ${error ?? stderr}`);
  /** @type {import('../../web/unpack.js').Embedded} */
  const embedded = {
    unpacker: unpacker.toString('base64'),
    packed: stdout.toString('base64'),
    sizes: ORDER.map((variant) => [variant, wasm[variant].length]),
  };
  for (const variant of ORDER) {
    if (!wasm[variant].equals(unpackBuild(embedded, variant))) throw new Error(`the ${variant} build unpacks to something else`);
  }
  return embedded;
}
