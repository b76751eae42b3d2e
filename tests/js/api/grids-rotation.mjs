// Rotary embedding of all rows of a tensor, in float64 or in plain float32 arithmetic.

/**
 * @param {{ data: ArrayLike<number>, shape: number[] }} tensor (B, H, L, D)
 * @param {(b: number, i: number) => number} position
 * @param {{ pairing: string, rotaryDim: number, base?: number }} rope
 * @param {(x: number) => number} round Math.fround: float32 cosines, products and sums; otherwise what comes in comes out
 * @returns {Float64Array}
 */
export function turned({ data, shape: [B, H, L, D] }, position, { pairing, rotaryDim, base = 10000 }, round) {
  const result = Float64Array.from(data);
  const half = rotaryDim / 2;
  for (let b = 0; b < B; b++) {
    for (let i = 0; i < L; i++) {
      for (let k = 0; k < half; k++) {
        const angle = position(b, i) * base ** ((-2 * k) / rotaryDim);
        const cos = round(Math.cos(angle));
        const sin = round(Math.sin(angle));
        for (let h = 0; h < H; h++) {
          const row = ((b * H + h) * L + i) * D;
          const first = row + (pairing === 'half' ? k : 2 * k);
          const second = row + (pairing === 'half' ? k + half : 2 * k + 1);
          const [x, y] = [data[first], data[second]];
          result[first] = round(round(x * cos) - round(y * sin));
          result[second] = round(round(x * sin) + round(y * cos));
        }
      }
    }
  }
  return result;
}
