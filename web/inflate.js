// Unpacks raw DEFLATE (RFC 1951): the embedded builds are a fifth smaller so. DecompressionStream is not everywhere that the builds
// run: jsdom and the engines of the scalar build have none.

/** Base lengths and distances, and their extra bits, of RFC 1951 section 3.2.5. */
const lengthBase = [
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
];
const lengthBits = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/** The order in which the lengths of the code-length code are given, of section 3.2.7. */
const codeOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

const mostBits = 15;

/**
 * A canonical Huffman code: symbols by code, and how many codes of each length there are.
 * @typedef {{ counts: Uint16Array, symbols: Uint16Array }} Code
 */

/**
 * @param {ArrayLike<number>} lengths of the symbols' codes in bits; 0 = not used
 * @returns {Code}
 */
function makeCode(lengths) {
  const counts = new Uint16Array(mostBits + 1);
  for (let i = 0; i < lengths.length; i++) counts[lengths[i]]++;
  counts[0] = 0;
  const starts = new Uint16Array(mostBits + 2);
  for (let n = 1; n <= mostBits; n++) starts[n + 1] = starts[n] + counts[n];
  const symbols = new Uint16Array(lengths.length);
  for (let i = 0; i < lengths.length; i++) if (lengths[i]) symbols[starts[lengths[i]]++] = i;
  return { counts, symbols };
}

class Inflater {
  #bytes;
  #at = 0;
  #bit = 0;
  #out = new Uint8Array(1 << 16);
  #size = 0;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
  }

  run() {
    let last;
    do {
      last = this.#bits(1);
      const kind = this.#bits(2);
      if (kind === 0) this.#stored();
      else if (kind === 1) this.#coded(fixedLengths(), new Uint8Array(30).fill(5));
      else if (kind === 2) this.#dynamic();
      else throw corrupt();
    } while (!last);
    return this.#out.slice(0, this.#size);
  }

  /** @param {number} count least significant bit first */
  #bits(count) {
    let value = 0;
    for (let i = 0; i < count; i++) {
      if (this.#at >= this.#bytes.length) throw corrupt();
      value |= ((this.#bytes[this.#at] >> this.#bit) & 1) << i;
      this.#bit = (this.#bit + 1) & 7;
      if (this.#bit === 0) this.#at++;
    }
    return value;
  }

  /**
   * Codes of one length are consecutive numbers, and follow twice those of the length before.
   * @param {Code} code
   */
  #symbol({ counts, symbols }) {
    // In local variables: most of the time goes here, in code that no engine has optimised yet.
    const bytes = this.#bytes;
    let at = this.#at;
    let bit = this.#bit;
    let byte = bytes[at];
    let value = 0;
    let first = 0;
    let index = 0;
    for (let n = 1; n <= mostBits; n++) {
      value = (value << 1) | ((byte >> bit) & 1);
      if (++bit === 8) {
        bit = 0;
        byte = bytes[++at];
      }
      const count = counts[n];
      first <<= 1;
      if (value - first < count) {
        if (at > bytes.length || (at === bytes.length && bit > 0)) throw corrupt();
        this.#at = at;
        this.#bit = bit;
        return symbols[index + value - first];
      }
      index += count;
      first += count;
    }
    throw corrupt();
  }

  /** @param {number} byte */
  #write(byte) {
    if (this.#size === this.#out.length) {
      const larger = new Uint8Array(this.#size * 2);
      larger.set(this.#out);
      this.#out = larger;
    }
    this.#out[this.#size++] = byte;
  }

  #stored() {
    if (this.#bit) {
      this.#bit = 0;
      this.#at++;
    }
    const size = this.#bits(16);
    if (size !== (~this.#bits(16) & 0xffff)) throw corrupt();
    for (let i = 0; i < size; i++) this.#write(this.#bits(8));
  }

  #dynamic() {
    const literals = this.#bits(5) + 257;
    const distances = this.#bits(5) + 1;
    const given = this.#bits(4) + 4;
    const codeLengths = new Uint8Array(19);
    for (let i = 0; i < given; i++) codeLengths[codeOrder[i]] = this.#bits(3);
    const code = makeCode(codeLengths);
    const lengths = new Uint8Array(literals + distances);
    for (let i = 0; i < lengths.length;) {
      const symbol = this.#symbol(code);
      if (symbol < 16) {
        lengths[i++] = symbol;
        continue;
      }
      if (symbol === 16 && i === 0) throw corrupt();
      const value = symbol === 16 ? lengths[i - 1] : 0;
      const times = symbol === 16 ? 3 + this.#bits(2) : symbol === 17 ? 3 + this.#bits(3) : 11 + this.#bits(7);
      if (i + times > lengths.length) throw corrupt();
      lengths.fill(value, i, i + times);
      i += times;
    }
    this.#coded(lengths.subarray(0, literals), lengths.subarray(literals));
  }

  /**
   * @param {ArrayLike<number>} literalLengths
   * @param {ArrayLike<number>} distanceLengths
   */
  #coded(literalLengths, distanceLengths) {
    const literals = makeCode(literalLengths);
    const distances = makeCode(distanceLengths);
    for (;;) {
      const symbol = this.#symbol(literals);
      if (symbol === 256) return;
      if (symbol < 256) {
        this.#write(symbol);
        continue;
      }
      const i = symbol - 257;
      if (i >= lengthBase.length) throw corrupt();
      const length = lengthBase[i] + this.#bits(lengthBits[i]);
      const d = this.#symbol(distances);
      if (d >= 30) throw corrupt();
      // Distances: 1 … 4, then two bases for each number of extra bits.
      const extra = d < 4 ? 0 : (d >> 1) - 1;
      const distance = (d < 4 ? d : (2 + (d & 1)) << extra) + 1 + this.#bits(extra);
      if (distance > this.#size) throw corrupt();
      for (let k = 0; k < length; k++) this.#write(this.#out[this.#size - distance]);
    }
  }
}

/** Lengths of the fixed code, of section 3.2.6. */
function fixedLengths() {
  return new Uint8Array(288).fill(8, 0, 144).fill(9, 144, 256).fill(7, 256, 280).fill(8, 280);
}

const corrupt = () => new Error('the packed data is damaged');

/**
 * @param {Uint8Array} bytes raw DEFLATE
 * @returns {Uint8Array<ArrayBuffer>}
 * @throws Error where they are damaged
 */
export function inflate(bytes) {
  return new Inflater(bytes).run();
}
