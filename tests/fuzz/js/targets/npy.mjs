// Headers of .npy files: of the right form with wrong contents, and damaged ones.

import { readNpy, writeNpy } from 'sdpa/io';
import { npyBytes } from '../../../js/io/craft.mjs';
import { answerOf, arrays, checkSame, drawTensor, maxBytes } from '../files.mjs';

/** @typedef {import('../draw.mjs').Draw} Draw */

const dtypes = Object.keys(arrays).filter((name) => name !== 'bfloat16');

/** A Python literal, right or wrong. @param {Draw} draw @param {number} [depth] @returns {string} */
function literal(draw, depth = 0) {
  const kind = draw.below(depth > 3 ? 6 : 9);
  const items = () => Array.from({ length: draw.below(4) }, () => literal(draw, depth + 1)).join(', ');
  if (kind === 0) return draw.pick(['True', 'False', 'None', 'Nan', '1e5', '-', '--1', '0x10', '', "u'x'"]);
  if (kind === 1) return `${draw.edge()}${draw.pick(['', '', 'L'])}`;
  if (kind === 2)
    return `'${draw.pick(['<f4', '>f8', '|u1', '<O', '|V2', '<U8', 'f4', '', '<M8[ns]', 'toString', '=i2'])}'`;
  if (kind === 3) return `${'9'.repeat(draw.below(400))}`;
  if (kind === 4) return draw.pick(["'", '"', "'\\'", `'${'x'.repeat(draw.below(2000))}'`]);
  if (kind === 5) return '('.repeat(draw.below(30)) + ')'.repeat(draw.below(30));
  return draw.pick([`(${items()})`, `(${items()},)`, `[${items()}]`, `{${items()}}`]);
}

/** @param {Draw} draw */
function header(draw) {
  const descr = draw.chance(0.7)
    ? `'${draw.pick(['<', '>', '|', '='])}${draw.pick(['f4', 'f8', 'i8', 'u1', 'b1', 'f2'])}'`
    : literal(draw);
  const shape = draw.chance(0.7)
    ? `(${Array.from({ length: draw.below(6) }, () => (draw.chance(0.8) ? draw.below(6) : draw.edge())).join(', ')}${draw.pick([',', ''])})`
    : literal(draw);
  const fortran = draw.chance(0.8) ? draw.pick(['True', 'False']) : literal(draw);
  const entries = [`'descr': ${descr}`, `'fortran_order': ${fortran}`, `'shape': ${shape}`];
  if (draw.chance(0.1)) entries.push(draw.pick([...entries, `${literal(draw)}: ${literal(draw)}`]));
  if (draw.chance(0.1)) entries.splice(draw.below(3), 1);
  return `{${entries.join(', ')}${draw.pick([', ', ''])}}${draw.pick(['', ' '.repeat(draw.below(70000)), 'x'])}`;
}

export function create() {
  return (/** @type {Draw} */ draw) => {
    if (draw.chance(0.2)) {
      const tensor = drawTensor(draw, dtypes);
      checkSame(readNpy(writeNpy(/** @type {any} */ (tensor))), tensor);
      return 'written';
    }
    const file = draw.chance(0.3)
      ? writeNpy(/** @type {any} */ (drawTensor(draw, dtypes)))
      : npyBytes(header(draw), draw.bytes(draw.below(300)), {
          major: draw.pick([1, 1, 2, 3, 3, 0, 4]),
          minor: draw.chance(0.05) ? 1 : 0,
          headerBytes: draw.chance(0.1) ? draw.edge() : undefined,
        });
    return answerOf(() => readNpy(draw.chance(0.5) ? draw.damaged(file) : file, { maxBytes })).outcome;
  };
}
