// Rows turned in place by their positions, with angles and rotation in float64.

import { rotateRow } from './rotate.js';

/**
 * What rows are turned by: plain data.
 * @typedef {object} Angles
 * @property {Float64Array} frequencies radians per position of each pair of columns
 * @property {number} amplitude factor of the turned columns
 * @property {boolean} interleaved which columns are a pair: see rotateRow()
 */

export class Turner {
  #position = NaN;
  #cos;
  #sin;

  /** @param {Angles} angles */
  constructor(angles) {
    this.angles = angles;
    this.#cos = new Float64Array(angles.frequencies.length);
    this.#sin = new Float64Array(angles.frequencies.length);
  }

  /**
   * Turns one row of headDim elements in place. The angles of the last position are kept: rows of one position, one after the
   * other, share their sines.
   * @param {Float32Array} array
   * @param {number} offset of the row's first element
   * @param {number} position
   */
  rotate(array, offset, position) {
    if (position !== this.#position) this.#turnTo(position);
    rotateRow(array, offset, this.#cos, this.#sin, 0, this.#cos.length, this.angles.interleaved);
  }

  /** @param {number} position */
  #turnTo(position) {
    const { frequencies, amplitude } = this.angles;
    for (let k = 0; k < this.#cos.length; ++k) {
      const angle = position * frequencies[k];
      this.#cos[k] = amplitude * Math.cos(angle);
      this.#sin[k] = amplitude * Math.sin(angle);
    }
    this.#position = position;
  }
}
