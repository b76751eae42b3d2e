// Headers of .safetensors files: JSON of any kind and depth, offsets that overlap, leave gaps or overflow, names twice, damaged files.

import { readSafetensors, writeSafetensors } from 'sdpa/io';
import { safetensorsBytes } from '../../../js/io/craft.mjs';
import { answerOf, arrays, checkSame, drawTensor, maxBytes } from '../files.mjs';

/** @typedef {import('../draw.mjs').Draw} Draw */

const dtypes = Object.keys(arrays);
const names = ['F64', 'F32', 'F16', 'BF16', 'I64', 'I32', 'I16', 'I8', 'U64', 'U8', 'BOOL', 'F8_E4M3', '', 'toString'];

/** JSON text, right or nearly. @param {Draw} draw @param {number} [depth] @returns {string} */
function json(draw, depth = 0) {
  const kind = draw.below(depth > 3 ? 6 : 8);
  const items = () => Array.from({ length: draw.below(4) }, () => json(draw, depth + 1));
  if (kind === 0) return draw.pick(['null', 'true', '-0', '1e400', '-1', '0.5', '1e2', '', '01', 'NaN']);
  if (kind === 1) return `${draw.edge()}`;
  if (kind === 2)
    return JSON.stringify(draw.pick([...names, '\ud800', '\u2028', '__proto__', 'x'.repeat(draw.below(3000))]));
  if (kind === 3) return draw.pick(['"\\u0061"', '"\\', '"\n"', '"a"']);
  if (kind === 4) {
    const depthOfNest = draw.chance(0.05) ? 200_000 : draw.below(50);
    return draw.pick([
      '['.repeat(depthOfNest) + ']'.repeat(depthOfNest),
      '{"a":'.repeat(depthOfNest) + '1' + '}'.repeat(depthOfNest),
    ]);
  }
  if (kind === 5) return `"${'y'.repeat(draw.chance(0.02) ? 3_000_000 : 10)}"`;
  return draw.chance(0.5)
    ? `[${items()}]`
    : `{${items().map((item) => `${JSON.stringify(draw.pick(['a', 'b', 'c']))}:${item}`)}}`;
}

/** @param {Draw} draw @returns {{ text: string, bytes: number }} */
function header(draw) {
  let at = 0;
  const entries = [];
  for (let left = draw.below(5); left > 0; left--) {
    const size = draw.pick([8, 4, 2, 1]);
    const dtype = draw.chance(0.9)
      ? /** @type {any} */ ({ 8: 'F64', 4: 'F32', 2: 'BF16', 1: 'U8' })[size]
      : draw.pick(names);
    const shape = Array.from({ length: draw.below(4) }, () => (draw.chance(0.95) ? draw.below(5) : draw.edge()));
    const end = at + shape.reduce((a, b) => a * b, size);
    const offsets = draw.chance(0.9) ? [at, end] : [draw.edge(), draw.edge()];
    at = end < 10_000 ? end : at;
    const given = draw.chance(0.95)
      ? `{"dtype":"${dtype}","shape":${draw.chance(0.97) ? JSON.stringify(shape) : json(draw)},"data_offsets":${draw.chance(0.97) ? JSON.stringify(offsets) : json(draw)}}`
      : json(draw);
    entries.push(
      `${draw.chance(0.97) ? `"${draw.pick(['a', 'b', 'c', 'd', '__proto__', '1', '\\u0061'])}"` : json(draw)}:${given}`,
    );
  }
  if (draw.chance(0.1)) entries.push(`"__metadata__":${draw.chance(0.5) ? '{"a":"b"}' : json(draw)}`);
  return { text: draw.chance(0.95) ? `{${entries}}${draw.pick(['', '   '])}` : json(draw), bytes: at };
}

export function create() {
  return (/** @type {Draw} */ draw) => {
    if (draw.chance(0.2)) {
      const tensors = Object.fromEntries(['x', '__proto__', '7', ''].map((name) => [name, drawTensor(draw, dtypes)]));
      const back = readSafetensors(writeSafetensors(/** @type {any} */ (tensors)));
      for (const [name, tensor] of Object.entries(tensors)) checkSame(back[name], tensor);
      return 'written';
    }
    const { text, bytes } = header(draw);
    const claimed = draw.chance(0.1) ? BigInt(Math.max(0, draw.edge())) : undefined;
    const data = draw.bytes(draw.chance(0.9) ? bytes : draw.below(300));
    const file = safetensorsBytes(text, data, claimed);
    return answerOf(() => readSafetensors(draw.chance(0.3) ? draw.damaged(file) : file, { maxBytes })).outcome;
  };
}
