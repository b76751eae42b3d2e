// A map of attention weights as a picture and as numbers: `node weights-map.mjs [folder]` writes map.png and map.csv. The matrix of
// 20 000 × 20 000 weights would take 1.6 GB; the map is computed without it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib'; // crc32: Node 20.15
import { load } from 'sdpa';

const [folder = '.'] = process.argv.slice(2);
const [tokens, headDim, cells] = [20_000, 16, 128];

// Tokens turn slowly, so that each attends to its neighbours and to those a turn away.
const turning = Float32Array.from({ length: tokens * headDim }, (_, n) => {
  const angle = (Math.floor(n / headDim) / tokens) * 2 * Math.PI * 8 * (1 + ((n % 4) >> 1));
  return 1.5 * (n % 2 ? Math.sin(angle) : Math.cos(angle));
});
const x = { data: turning, shape: [tokens, headDim] };

const sdpa = await load();
const { pool } = await sdpa.attentionWeightsAsync(x, x, {
  causal: true,
  pool: { rows: cells, columns: cells, kind: 'max' },
});
const map = pool.data;
sdpa.dispose();

const lines = Array.from({ length: cells }, (_, r) => Array.from(map.subarray(r * cells, (r + 1) * cells)).join(','));
writeFileSync(join(folder, 'map.csv'), `${lines.join('\n')}\n`);

// Grey, from each row's largest (black) down to a ten thousandth of it (white), logarithmic: large weights must not hide the others.
const grey = map.map((w, i) => {
  const row = Math.floor(i / cells) * cells;
  const largest = Math.max(...map.subarray(row, row + cells));
  return 255 * Math.min(1, Math.max(0, -Math.log10(w / largest) / 4));
});
writeFileSync(join(folder, 'map.png'), png(cells, cells, grey));
console.log(`map.png and map.csv: ${cells} × ${cells} cells of ${tokens} × ${tokens} weights`);

/**
 * A grey picture as a PNG file.
 * @param {number} width
 * @param {number} height
 * @param {ArrayLike<number>} pixels 0 to 255, row after row
 */
function png(width, height, pixels) {
  const chunk = (/** @type {string} */ name, /** @type {Uint8Array} */ data) => {
    const bytes = Buffer.alloc(data.length + 12);
    bytes.writeUInt32BE(data.length, 0);
    bytes.write(name, 4, 'latin1');
    bytes.set(data, 8);
    bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), data.length + 8);
    return bytes;
  };
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0]); // 8 bits of grey
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  const rows = Buffer.alloc((width + 1) * height); // each row begins with its filter, 0
  for (let y = 0; y < height; y++)
    for (let i = 0; i < width; i++) rows[y * (width + 1) + 1 + i] = pixels[y * width + i];
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
