// Choices of a fuzzer, the same for the same seed.

import { randomSource } from '../../js/helpers/reference.mjs';

/** Numbers that sizes and offsets are broken with. */
const edges = [
  0,
  1,
  2,
  255,
  256,
  65535,
  65536,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
  2 ** 63,
];

export class Draw {
  /** @param {number} seed */
  constructor(seed) {
    const { uniform, normal, tensor } = randomSource(seed);
    this.uniform = uniform;
    this.normal = normal;
    this.tensor = tensor;
  }

  /** @param {number} probability */
  chance(probability) {
    return this.uniform() < probability;
  }

  /** A whole number from 0 to below the limit. @param {number} limit */
  below(limit) {
    return Math.floor(this.uniform() * limit);
  }

  /** @template T @param {readonly T[]} list @returns {T} */
  pick(list) {
    return list[this.below(list.length)];
  }

  /** A number at the edge of some range. */
  edge() {
    return this.pick(edges) + (this.chance(0.2) ? this.pick([-1, 1]) : 0);
  }

  /** @param {number} length */
  bytes(length) {
    return Uint8Array.from({ length }, () => this.below(256));
  }

  /**
   * A copy with some bytes, and its end, changed.
   * @param {Uint8Array} file
   */
  damaged(file) {
    const copy = file.slice();
    for (let change = this.below(6); change > 0 && copy.length > 0; change--) {
      const at = this.below(copy.length);
      if (this.chance(0.2)) copy.copyWithin(at, this.below(copy.length), this.below(copy.length));
      else if (this.chance(0.3)) copy[at] = this.pick([0, 1, 127, 128, 255]);
      else if (this.chance(0.5)) copy[at] ^= 1 << this.below(8);
      else copy[at] = this.below(256);
    }
    return this.chance(0.1) ? copy.subarray(0, this.below(copy.length + 1)) : copy;
  }
}
