// Pictures as PNG files (ISO/IEC 15948): 8 bits of red, green and blue for each pixel, and text to draw into them.

import { deflateSync } from 'node:zlib';
import { crc32 } from '../io/zip.js';

const kSignature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const kTrueColour = 2;

export class Picture {
  /**
   * White.
   * @param {number} width pixels
   * @param {number} height
   */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.pixels = new Uint8Array(width * height * 3).fill(255);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {readonly number[]} colour red, green, blue
   */
  set(x, y, colour) {
    this.pixels.set(colour, (y * this.width + x) * 3);
  }

  /**
   * @param {{ x: number, y: number, width: number, height: number }} where
   * @param {readonly number[]} colour
   */
  fill({ x, y, width, height }, colour) {
    for (let j = y; j < y + height; j++) for (let i = x; i < x + width; i++) this.set(i, j, colour);
  }

  /** @returns {Uint8Array} the file */
  encode() {
    const { width, height, pixels } = this;
    // Each line begins with the number of its filter; neighbours above are often equal: 2 = the difference to the line above.
    const lines = new Uint8Array(height * (1 + width * 3));
    for (let y = 0; y < height; y++) {
      const to = y * (1 + width * 3);
      lines[to] = 2;
      for (let k = 0; k < width * 3; k++) {
        const at = y * width * 3 + k;
        lines[to + 1 + k] = pixels[at] - (y > 0 ? pixels[at - width * 3] : 0);
      }
    }
    const header = new Uint8Array(13);
    const view = new DataView(header.buffer);
    view.setUint32(0, width);
    view.setUint32(4, height);
    header.set([8, kTrueColour, 0, 0, 0], 8);
    const parts = [
      Uint8Array.from(kSignature),
      chunk('IHDR', header),
      chunk('IDAT', deflateSync(lines, { level: 9 })),
      chunk('IEND', new Uint8Array(0)),
    ];
    return Buffer.concat(parts);
  }
}

/**
 * @param {string} type four letters
 * @param {Uint8Array} data
 */
function chunk(type, data) {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  for (let i = 0; i < 4; i++) bytes[4 + i] = type.charCodeAt(i);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc32(bytes.subarray(4, 8 + data.length)));
  return bytes;
}
