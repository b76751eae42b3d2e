// Unpacks raw DEFLATE (RFC 1951): the embedded builds are a fifth smaller so. DecompressionStream is not everywhere that the builds
// run: jsdom and the engines of the scalar build have none.

/** Base lengths and distances, and their extra bits, of RFC 1951 section 3.2.5. */
const lengthBase = [
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
];
const lengthBits = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/** Bytes that one symbol stands for at most. */
const longest = 258;

/** The order in which the lengths of the code-length code are given, of section 3.2.7. */
const codeOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

const mostBits = 15;

/** Bits that are looked up in one step. */
const quickBits = 9;

/**
 * A canonical Huffman code: symbols by code, and how many codes of each length there are. `quick` has what the next quickBits bits
 * start with, symbol and length in one number, or 0 where that code is longer.
 * @typedef {{ counts: Uint16Array, symbols: Uint16Array, quick: Uint16Array }} Code
 */

/**
 * @param {Uint8Array} lengths of the symbols' codes in bits; 0 = not used
 * @returns {Code}
 */
function makeCode(lengths) {
  const counts = new Uint16Array(mostBits + 1);
  for (const length of lengths) counts[length]++;
  counts[0] = 0;
  const places = new Uint16Array(mostBits + 2);
  const codes = new Uint16Array(mostBits + 2);
  for (let n = 1; n <= mostBits; n++) {
    places[n + 1] = places[n] + counts[n];
    codes[n + 1] = (codes[n] + counts[n]) << 1;
  }
  const symbols = new Uint16Array(lengths.length);
  const quick = new Uint16Array(1 << quickBits);
  lengths.forEach((length, symbol) => {
    if (length === 0) return;
    symbols[places[length]++] = symbol;
    const code = codes[length]++;
    if (length > quickBits) return;
    // Codes come with their first bit lowest.
    let reversed = 0;
    for (let n = 0; n < length; n++) reversed |= ((code >> n) & 1) << (length - 1 - n);
    for (let k = reversed; k < quick.length; k += 1 << length) quick[k] = (symbol << 4) | length;
  });
  return { counts, symbols, quick };
}

class Inflater {
  #bytes;
  #at = 0;
  /** Bits that have been read and not used, the next one lowest, and how many they are. */
  #hold = 0;
  #held = 0;
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

  /** Reads until there are `count` bits; those behind the end are 0. @param {number} count */
  #need(count) {
    while (this.#held < count) {
      this.#hold |= this.#bytes[this.#at++] << this.#held;
      this.#held += 8;
    }
  }

  /** @param {number} count at most 16 */
  #bits(count) {
    this.#need(count);
    const value = this.#hold & ((1 << count) - 1);
    this.#drop(count);
    return value;
  }

  /** @param {number} count */
  #drop(count) {
    this.#hold >>>= count;
    this.#held -= count;
    if (this.#at - (this.#held >> 3) > this.#bytes.length) throw corrupt();
  }

  /**
   * Codes of one length are consecutive numbers, and follow twice those of the length before.
   * @param {Code} code
   */
  #symbol({ counts, symbols, quick }) {
    this.#need(mostBits);
    const entry = quick[this.#hold & (quick.length - 1)];
    if (entry !== 0) {
      this.#drop(entry & 15);
      return entry >> 4;
    }
    let value = 0;
    let first = 0;
    let index = 0;
    for (let n = 1; n <= mostBits; n++) {
      value = (value << 1) | ((this.#hold >> (n - 1)) & 1);
      first <<= 1;
      if (value - first < counts[n]) {
        this.#drop(n);
        return symbols[index + value - first];
      }
      index += counts[n];
      first += counts[n];
    }
    throw corrupt();
  }

  /** Makes room. @param {number} count bytes */
  #grow(count) {
    if (this.#size + count <= this.#out.length) return;
    const larger = new Uint8Array((this.#size + count) * 2);
    larger.set(this.#out);
    this.#out = larger;
  }

  #stored() {
    this.#drop(this.#held & 7);
    const size = this.#bits(16);
    if (size !== (~this.#bits(16) & 0xffff)) throw corrupt();
    this.#grow(size);
    for (let i = 0; i < size; i++) this.#out[this.#size++] = this.#bits(8);
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
   * @param {Uint8Array} literalLengths
   * @param {Uint8Array} distanceLengths
   */
  #coded(literalLengths, distanceLengths) {
    const literals = makeCode(literalLengths);
    const distances = makeCode(distanceLengths);
    for (;;) {
      const symbol = this.#symbol(literals);
      if (symbol === 256) return;
      this.#grow(longest);
      if (symbol < 256) {
        this.#out[this.#size++] = symbol;
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
      const from = this.#size - distance;
      // One that overlaps repeats what it has just written.
      if (distance >= length) this.#out.copyWithin(this.#size, from, from + length);
      else for (let k = 0; k < length; k++) this.#out[this.#size + k] = this.#out[from + k];
      this.#size += length;
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
