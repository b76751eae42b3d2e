// A KV cache made of plain arrays, token by token: what the real one must do, and nothing of how. Storage types are rounded by their
// definition, in float64.

/**
 * A token of one batch row: the stored key and value of each head, or null where a ring has lost it.
 * @typedef {{ key: number[][], value: number[][] } | null} Token
 */

/** @param {number} x @returns {number} the nearest whole number, ties to even */
export function roundHalfEven(x) {
  const low = Math.floor(x);
  const rest = x - low;
  if (rest !== 0.5) return rest < 0.5 ? low : low + 1;
  return low % 2 === 0 ? low : low + 1;
}

/** @param {number} x @returns {number} the nearest binary16 number */
export function toHalf(x) {
  if (x === 0 || !Number.isFinite(x)) return x;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), -14);
  const step = 2 ** (exponent - 10);
  const rounded = roundHalfEven(x / step) * step;
  return Math.abs(rounded) >= 65536 ? Math.sign(x) * Infinity : rounded;
}

/** @param {number[]} row @returns {number[]} what an int8 cache stands for */
export function toInt8(row) {
  const scale = Math.fround(Math.max(...row.map(Math.abs)) / 127);
  return scale === 0 ? row.map(() => 0) : row.map((x) => roundHalfEven(x / scale) * scale);
}

/** @type {Record<string, (row: number[]) => number[]>} */
const stored = { float32: (row) => row, float16: (row) => row.map(toHalf), int8: toInt8 };

export class ModelCache {
  /** @param {any} options those of createKVCache */
  constructor(options) {
    const { batch, numKvHeads, headDim, headDimV = headDim, dtype = 'float32', window, globalKeys = 0 } = options;
    this.options = { batch, numKvHeads, headDim, headDimV, dtype, window, globalKeys };
    /** @type {Token[][]} */
    this.rows = Array.from({ length: batch }, () => []);
  }

  get lengths() {
    return this.rows.map((row) => row.length);
  }

  get length() {
    return Math.max(...this.lengths);
  }

  fork() {
    const copy = new ModelCache(this.options);
    copy.rows = this.rows.map((row) => [...row]);
    return copy;
  }

  /**
   * @param {(b: number, h: number, t: number) => number[]} key
   * @param {(b: number, h: number, t: number) => number[]} value
   * @param {ArrayLike<number>} counts
   */
  append(key, value, counts) {
    const { numKvHeads, dtype, window, globalKeys } = this.options;
    this.rows.forEach((row, b) => {
      for (let t = 0; t < counts[b]; t++) {
        const heads = Array.from({ length: numKvHeads }, (_, h) => h);
        row.push({
          key: heads.map((h) => stored[dtype](key(b, h, t))),
          value: heads.map((h) => stored[dtype](value(b, h, t))),
        });
      }
      if (window === undefined) return;
      for (let j = globalKeys; j < row.length - window; j++) row[j] = null;
    });
  }

  /** @param {number | ArrayLike<number>} length */
  truncate(length) {
    this.rows.forEach((row, b) => row.splice(typeof length === 'number' ? length : length[b]));
  }

  /** @param {number[]} indices */
  evict(indices) {
    this.rows = this.rows.map((row) => row.filter((_, j) => !indices.includes(j)));
  }

  /**
   * Keys and values as tensors of the longest row's length, and which of them each row has.
   * @returns {{ key: any, value: any, held: (b: number, j: number) => boolean }}
   */
  tensors() {
    const { batch, numKvHeads, headDim, headDimV } = this.options;
    const { length } = this;
    /** @param {'key' | 'value'} name @param {number} dim */
    const tensor = (name, dim) => {
      const data = new Float64Array(batch * numKvHeads * length * dim);
      this.rows.forEach((row, b) =>
        row.forEach((token, j) =>
          token?.[name].forEach((numbers, h) => data.set(numbers, ((b * numKvHeads + h) * length + j) * dim)),
        ),
      );
      return { data, shape: [batch, numKvHeads, length, dim] };
    };
    return { key: tensor('key', headDim), value: tensor('value', headDimV), held: (b, j) => Boolean(this.rows[b][j]) };
  }

  /**
   * The options for a reference over tensors(): attend()'s, with where queries stand and what is held spelt out.
   * @param {number} L
   * @param {any} options those of attend()
   */
  spelt(L, options) {
    const { batch } = this.options;
    const { length, lengths } = this;
    const { held } = this.tensors();
    const given = options.mask;
    const data = new Uint8Array(batch * L * length);
    for (let b = 0; b < batch; b++) {
      for (let i = 0; i < L; i++) {
        for (let j = 0; j < length; j++) {
          data[(b * L + i) * length + j] = Number(held(b, j) && (!given || given.data[i * length + j] !== 0));
        }
      }
    }
    const offsets = lengths.map((n, b) => n - (options.queryLengths ? options.queryLengths[b] : L));
    return {
      causal: true,
      ...options,
      mask: { data, shape: [batch, 1, L, length] },
      kvLengths: Int32Array.from(lengths),
      queryOffset: Int32Array.from(offsets),
    };
  }
}
