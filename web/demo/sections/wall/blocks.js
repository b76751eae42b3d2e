// Attention of one head in blocks of query rows, each as large as fits into what is left of the slice.

/** Rows that the kernels take at once: a block that is no multiple of it wastes lanes. */
const lanes = 8;

/** Scores per millisecond to start with: less than the slowest build does, so that the first block is short too. */
const firstRate = 4000;

/** A block is not worth its call where fewer milliseconds are left of the slice. */
const worthwhile = 7;

/** How much faster a block may be planned than the one before was measured. */
const growth = 4;

/**
 * Rows from `first` on that have about `scores` scores in all.
 * @param {number} first
 * @param {number} tokens
 * @param {boolean} causal query i has i + 1 scores; else each has `tokens`
 * @param {number} scores
 * @returns {number} at least 1, and no more than there are
 */
export function rowsWithin(first, tokens, causal, scores) {
  // Causal: n·first + n²/2 = scores. A slice that was held up before its first block leaves less than none.
  const room = Math.max(0, scores);
  const rows = causal ? Math.sqrt(first * first + 2 * room) - first : room / tokens;
  const whole = rows >= lanes ? Math.floor(rows / lanes) * lanes : Math.max(1, Math.floor(rows));
  return Math.min(tokens - first, whole);
}

/**
 * @param {number} first
 * @param {number} rows
 * @param {number} tokens
 * @param {boolean} causal
 */
const scoresOf = (first, rows, tokens, causal) => rows * (causal ? first + (rows + 1) / 2 : tokens);

/** Plans blocks by the speed of the last ones. */
export class BlockPlan {
  #rate = firstRate;

  /**
   * @param {number} first row
   * @param {number} tokens
   * @param {boolean} causal
   * @param {number} milliseconds for the block
   */
  rows(first, tokens, causal, milliseconds) {
    return rowsWithin(first, tokens, causal, this.#rate * milliseconds);
  }

  /**
   * @param {number} scores that a block had
   * @param {number} milliseconds that it took; 0 where the clock is too coarse to tell
   */
  learn(scores, milliseconds) {
    const measured = Math.min(scores / milliseconds, this.#rate * growth);
    // Downwards at once, upwards by halves: a block that is too long is what must not be.
    this.#rate = measured < this.#rate ? measured : (this.#rate + measured) / 2;
  }
}

/**
 * One pass over all rows.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {{ query: import('sdpa').SdpaTensor, key: import('sdpa').SdpaTensor, value: import('sdpa').SdpaTensor, tokens: number, headDim: number, causal: boolean }} problem
 *   tensors of shape (tokens, headDim) that live in the instance
 * @param {Float32Array} out (tokens, headDim), receives the result
 * @param {BlockPlan} plan
 * @param {import('../../parts/pace.js').Pace} pace
 * @param {(rows: number, scores: number) => void} [onProgress] rows done so far, share of the scores done so far
 * @returns {Promise<{ milliseconds: number, blocks: number }>} the time spent inside sdpa.attention()
 */
export async function attendInBlocks(sdpa, problem, out, plan, pace, onProgress) {
  const { query, key, value, tokens, headDim, causal } = problem;
  const total = scoresOf(0, tokens, tokens, causal);
  let done = 0;
  let milliseconds = 0;
  let blocks = 0;
  for (let first = 0; first < tokens;) {
    const rows = plan.rows(first, tokens, causal, pace.left);
    // These rows of the query as they lie in wasm memory, and of the result's own array: nothing is copied but the block's output.
    const block = {
      data: query.data.subarray(first * headDim, (first + rows) * headDim),
      shape: [rows, headDim],
    };
    const options = {
      ...(causal && { causal, queryOffset: first }),
      out: out.subarray(first * headDim, (first + rows) * headDim),
    };
    const start = performance.now();
    sdpa.attention(block, key, value, options);
    const took = performance.now() - start;
    const scores = scoresOf(first, rows, tokens, causal);
    plan.learn(scores, took);
    milliseconds += took;
    done += scores;
    first += rows;
    blocks++;
    if (pace.left < worthwhile) {
      onProgress?.(first, done / total);
      await pace.rest();
    }
  }
  onProgress?.(tokens, 1);
  return { milliseconds, blocks };
}
