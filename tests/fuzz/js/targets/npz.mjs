// Archives: directories that lie, members twice or over one another, contents that inflate to anything, damaged files.

import { deflateRawSync } from 'node:zlib';
import { readNpz, writeNpy, writeNpz } from 'sdpa/io';
import { zipBytes } from '../../../js/io/craft.mjs';
import { answerOf, arrays, checkSame, crc32, drawTensor, maxBytes } from '../files.mjs';

/** @typedef {import('../draw.mjs').Draw} Draw */

const dtypes = Object.keys(arrays).filter((name) => name !== 'bfloat16');
const zeros = deflateRawSync(new Uint8Array(2 ** 24));

/** @param {Draw} draw */
function member(draw) {
  const array = draw.chance(0.9) ? writeNpy(/** @type {any} */ (drawTensor(draw, dtypes))) : draw.bytes(draw.below(90));
  const deflated = draw.chance(0.5);
  let content = deflated ? deflateRawSync(array) : array;
  let size = array.length;
  if (draw.chance(0.05)) content = zeros;
  else if (draw.chance(0.1)) content = draw.damaged(content);
  if (draw.chance(0.1)) size = draw.chance(0.5) ? draw.below(300) : draw.edge();
  return {
    name: draw.pick([
      'a.npy',
      'b.npy',
      '__proto__.npy',
      'a',
      '.npy',
      '../c.npy',
      'constructor.npy',
      `${draw.below(9)}.npy`,
    ]),
    content,
    crc: draw.chance(0.05) ? draw.below(2 ** 32) : crc32(array),
    method: draw.chance(0.05) ? draw.below(100) : deflated ? 8 : 0,
    flags: draw.chance(0.05) ? draw.below(65536) : 0,
    size,
    zip64: draw.chance(0.2),
  };
}

export function create() {
  return (/** @type {Draw} */ draw) => {
    if (draw.chance(0.2)) {
      const tensors = Object.fromEntries(['x', '__proto__', ''].map((name) => [name, drawTensor(draw, dtypes)]));
      const back = readNpz(writeNpz(/** @type {any} */ (tensors), { compress: draw.chance(0.5) }));
      for (const [name, tensor] of Object.entries(tensors)) checkSame(back[name], tensor);
      return 'written';
    }
    const members = Array.from({ length: draw.below(4) }, () => member(draw));
    const file = zipBytes(/** @type {any} */ (members), draw.chance(0.1) ? { count: draw.edge() } : {});
    return answerOf(() => readNpz(draw.chance(0.4) ? draw.damaged(file) : file, { maxBytes })).outcome;
  };
}
