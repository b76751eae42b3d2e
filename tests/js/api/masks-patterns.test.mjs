// Dilated windows, neighbourhoods and the global tokens of Longformer and BigBird against their definitions, cell by cell.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { masks } from 'sdpa';
import { assertThrows } from '../helpers/errors.mjs';
import { assertSame, check, sizes } from './masks-check.mjs';

const any = /** @type {any} */ (masks);

describe('dilated', () => {
  test('is every d-th key of a window', () => {
    for (const n of sizes) {
      for (const [[left, right], d] of /** @type {[[number, number], number][]} */ ([
        [[0, 0], 1],
        [[3, 2], 1],
        [[3, 2], 2],
        [[0, 5], 3],
        [[1, 0], 64],
        [[2, 2], 100],
        [[Infinity, 0], 5],
        [[Infinity, Infinity], 7],
        [[1, 1], 2 ** 31 - 1],
      ])) {
        /** @param {number} p @param {number} j */
        const near = (p, j) => (j - p) % d === 0 && (j - p) / d >= -left && (j - p) / d <= right;
        const size = { rows: n, columns: n };
        check(masks.dilated(n, n, [left, right], d), near, size, `${n} [${left}, ${right}] ${d}`);
        for (const offset of [-70, -1, 9, 200]) {
          const mask = masks.dilated(n, 100, [left, right], d, { queryOffset: offset });
          check(
            mask,
            (i, j) => near(i + offset, j),
            { rows: n, columns: 100 },
            `${n} [${left}, ${right}] ${d} ${offset}`,
          );
        }
      }
    }
  });

  test('takes a position as a window does, and is one where nothing is left out', () => {
    const at = { align: /** @type {const} */ ('lower-right') };
    assertSame(masks.dilated(70, 150, [9, 4], 1, at), masks.window(70, 150, [9, 4], at));
    const each = masks.dilated(10, 20, [2, 0], 3, { queryOffset: Int32Array.of(0, 7) });
    check(each, (i, j, b) => [0, 3, 6].includes(i + 7 * b - j), { rows: 10, columns: 20, batch: 2 });
  });

  test('computes the tiles between the first and the last key', () => {
    // From 8 keys before to 8 behind, 32 apart: 256 tokens, four tiles, on each side.
    const { tiles, full, partial } = masks.stats(masks.dilated(4096, 4096, [8, 8], 32));
    assert.deepEqual([tiles, full, partial], [4096, 0, 9 * 64 - 2 * (1 + 2 + 3 + 4)]);
  });

  test('refuses what it cannot do', () => {
    assertThrows(() => masks.dilated(3, 5, [1, 1], 2), 'align-required', /^dilated/);
    assertThrows(() => masks.dilated(5, 5, [1, 1], 0), 'option', /dilation.*got 0/);
    assertThrows(() => any.dilated(5, 5, [1, 1]), 'type', /dilation must be a number, got undefined/);
    assertThrows(() => any.dilated(5, 5, 2, 2), 'type', /window must be \[left, right\]/);
  });
});

/**
 * What a token sees along an axis, from the rule alone: of its group, the tokens with the same rest by d, the run of k that has it in the
 * middle as nearly as there is room for; with an even k one more before it.
 * @param {number} length
 * @param {number} k
 * @param {number} d
 * @param {boolean} isCausal
 * @returns {(i: number, j: number) => boolean}
 */
function neighborsAlong(length, k, d, isCausal) {
  const seen = Array.from(Array(length).keys(), (i) => {
    const group = Array.from({ length }, (_, j) => j).filter((j) => j % d === i % d);
    const place = group.indexOf(i);
    if (isCausal) return new Set(group.filter((_, m) => m <= place && m > place - k));
    const starts = group.slice(0, group.length - k + 1).keys();
    const off = (/** @type {number} */ start) => Math.abs(start + Math.floor(k / 2) - place);
    const best = [...starts].reduce((found, start) => (off(start) < off(found) ? start : found));
    return new Set(group.slice(best, best + k));
  });
  return (i, j) => seen[i].has(j);
}

describe('neighborhood', () => {
  test('of a sequence: every token sees as many, the nearest of its group', () => {
    for (const [n, k, d] of [
      [1, 1, 1],
      [7, 7, 1],
      [64, 3, 1],
      [65, 13, 1],
      [129, 8, 1],
      [129, 64, 2],
      [130, 5, 26],
      [131, 5, 26],
      [200, 7, 3],
      [200, 4, 50],
      [127, 1, 5],
    ]) {
      for (const causal of [false, true]) {
        const mask = masks.neighborhood(n, { kernelSize: k, dilation: d, causal });
        const near = neighborsAlong(n, k, d, causal);
        check(mask, near, { rows: n, columns: n }, `${n} ${k} ${d} ${causal}`);
        if (!causal) assert.equal(masks.stats(mask).cells, n * k);
      }
    }
    assertSame(masks.neighborhood([90], { kernelSize: [5] }), masks.neighborhood(90, { kernelSize: 5, dilation: 1 }));
  });

  test('of images and volumes: what it sees along every axis', () => {
    for (const [size, kernelSize, dilation, causal] of /** @type {[number[], number[], number[], boolean[]][]} */ ([
      [
        [8, 9],
        [3, 3],
        [1, 1],
        [false, false],
      ],
      [
        [14, 14],
        [7, 7],
        [2, 2],
        [false, false],
      ],
      [
        [13, 17],
        [3, 5],
        [4, 3],
        [false, false],
      ],
      [
        [13, 17],
        [4, 2],
        [3, 1],
        [false, true],
      ],
      [
        [9, 8],
        [9, 1],
        [1, 8],
        [true, false],
      ],
      [
        [1, 70],
        [1, 9],
        [1, 2],
        [false, false],
      ],
      [
        [3, 5, 7],
        [3, 3, 3],
        [1, 1, 2],
        [false, false, false],
      ],
      [
        [6, 4, 5],
        [2, 3, 2],
        [3, 1, 2],
        [true, false, true],
      ],
    ])) {
      const near = size.map((length, n) => neighborsAlong(length, kernelSize[n], dilation[n], causal[n]));
      const tokens = size.reduce((a, b) => a * b);
      const place = (/** @type {number} */ i) => {
        const index = [];
        for (const length of [...size].reverse()) {
          index.unshift(i % length);
          i = Math.floor(i / length);
        }
        return index;
      };
      const places = Array.from({ length: tokens }, (_, i) => place(i));
      check(
        masks.neighborhood(size, { kernelSize, dilation, causal }),
        (i, j) => near.every((along, n) => along(places[i][n], places[j][n])),
        { rows: tokens, columns: tokens },
        JSON.stringify({ size, kernelSize, dilation, causal }),
      );
    }
  });

  test('one number serves all axes', () => {
    const same = masks.neighborhood([12, 12], { kernelSize: [3, 3], dilation: [2, 2], causal: [true, true] });
    assertSame(masks.neighborhood([12, 12], { kernelSize: 3, dilation: 2, causal: true }), same);
  });

  test('skips the tiles that are far away', () => {
    // 33 of 4096: the own tile and its neighbours.
    const { skipped, tiles } = masks.stats(masks.neighborhood(4096, { kernelSize: 33 }));
    assert.deepEqual([tiles, tiles - skipped], [4096, 3 * 64 - 2]);
    // 7 x 7 of 64 x 64, a line of the image is a tile: each sees seven.
    const image = masks.stats(masks.neighborhood([64, 64], { kernelSize: 7 }));
    assert.deepEqual([image.tiles, image.tiles - image.skipped], [4096, 7 * 64]);
  });

  test('refuses what it cannot do', () => {
    for (const [size, options, code, message] of /** @type {[any, any, string, RegExp][]} */ ([
      [10, undefined, 'type', /kernelSize must be a number, got undefined/],
      [undefined, { kernelSize: 1 }, 'type', /neighborhood size must be a number, got undefined/],
      [0, { kernelSize: 1 }, 'option', /size.*got 0/],
      [[], { kernelSize: 1 }, 'option', /1, 2 or 3 axes/],
      [[4, 4, 4, 4], { kernelSize: 1 }, 'option', /1, 2 or 3 axes, got \[4, 4, 4, 4\]/],
      [10, { kernelSize: 0 }, 'option', /kernelSize.*got 0/],
      [10, { kernelSize: 3, dilation: 1.5 }, 'option', /dilation.*got 1.5/],
      [10, { kernelSize: 11 }, 'option', /11 x 1 = 11 but the axis has 10 tokens/],
      [[10, 8], { kernelSize: 3, dilation: 3 }, 'option', /3 x 3 = 9 but the axis has 8 tokens/],
      [[10, 8], { kernelSize: [3] }, 'option', /kernelSize must be one for all axes or one for each of 2, got \[3\]/],
      [10, { kernelSize: 3, causal: 1 }, 'type', /causal must be true or false/],
      [10, { kernelSize: 3, window: 2 }, 'unknown-option', /neighborhood has no option 'window'/],
      [[2 ** 20, 2 ** 20], { kernelSize: 1 }, 'option', /tokens.*got 1099511627776/],
    ])) {
      assertThrows(() => masks.neighborhood(size, options), code, message);
    }
  });
});

describe('longformer', () => {
  test('with gaps, the same or others for each head', () => {
    for (const n of [1, 63, 130]) {
      for (const [options, dilations] of /** @type {[any, number[]][]} */ ([
        [{ window: 3, dilation: 2 }, [2]],
        [{ window: 3, dilation: [1, 4, 40] }, [1, 4, 40]],
        [{ window: 200, dilation: Int32Array.of(3, 1) }, [3, 1]],
        [{ window: 2, dilation: [5, 2], globalTokens: [0, 0] }, [5, 2]],
        [{ window: 4, dilation: [1, 8], globalTokens: [n - 1, Math.floor(n / 2), 0] }, [1, 8]],
      ])) {
        const tokens = new Set(options.globalTokens);
        /** @param {number} i @param {number} j @param {number} h */
        const near = (i, j, h) =>
          tokens.has(i) ||
          tokens.has(j) ||
          ((i - j) % dilations[h] === 0 && Math.abs(i - j) <= options.window * dilations[h]);
        const size = { rows: n, columns: n, heads: dilations.length };
        const what = `${n} ${JSON.stringify(options)}`;
        check(masks.longformer(n, options), (i, j, _, h) => near(i, j, h), size, what);
        const causal = masks.longformer(n, { ...options, causal: true });
        check(causal, (i, j, _, h) => near(i, j, h) && j <= i, size, `${what} causal`);
      }
    }
  });

  test('refuses gaps that are none', () => {
    assertThrows(() => masks.longformer(9, { window: 1, dilation: 0 }), 'option', /longformer dilation.*got 0/);
    assertThrows(() => masks.longformer(9, { window: 1, dilation: [] }), 'option', /longformer dilation: its length/);
    assertThrows(() => masks.longformer(9, { window: 1, dilation: [1, -1] }), 'option', /dilation\[1\].*got -1/);
    assertThrows(() => any.longformer(9, { window: 1, dilation: '2' }), 'type', /longformer dilation must be/);
  });
});

describe('bigbird', () => {
  const dense = (/** @type {any} */ mask) => masks.toDense(mask).data;

  test('global tokens of the sequence see all and are seen by all, and nothing else changes', () => {
    for (const [n, options] of /** @type {[number, any][]} */ ([
      [130, { blockSize: 8, seed: 4 }],
      [130, { blockSize: 8, globalBlocks: 0, heads: 2 }],
      [300, { blockSize: 64, window: 1, randomBlocks: 0, globalBlocks: 0 }],
    ])) {
      const plain = dense(masks.bigbird(n, options));
      for (const globalTokens of [[], [0], [n - 1, 20, 21, 22, 64, 20], Int32Array.of(63)]) {
        const tokens = new Set(globalTokens);
        const { heads = 1 } = options;
        check(
          masks.bigbird(n, { ...options, globalTokens }),
          (i, j, _, h) => tokens.has(i) || tokens.has(j) || plain[(h * n + i) * n + j] === 1,
          { rows: n, columns: n, heads },
          `${n} ${JSON.stringify({ ...options, globalTokens })}`,
        );
      }
    }
  });

  test('extra tokens stand before the sequence, whose blocks are counted behind them', () => {
    for (const [n, extraTokens, options] of /** @type {[number, number, any][]} */ ([
      [130, 1, { blockSize: 8, seed: 4 }],
      [130, 64, { blockSize: 16, heads: 2 }],
      [130, 3, { blockSize: 8, globalBlocks: 2 }],
      [40, 40, {}],
    ])) {
      const length = n - extraTokens;
      // Where there are extra tokens no block is global unless that is said.
      const plain = dense(masks.bigbird(length, { globalBlocks: 0, ...options }));
      for (const globalTokens of [undefined, [0, Math.min(extraTokens, n - 1), n - 1]]) {
        const tokens = new Set(globalTokens);
        check(
          masks.bigbird(n, { ...options, extraTokens, globalTokens }),
          (i, j, _, h) =>
            Math.min(i, j) < extraTokens ||
            tokens.has(i) ||
            tokens.has(j) ||
            plain[(h * length + i - extraTokens) * length + j - extraTokens] === 1,
          { rows: n, columns: n, heads: options.heads ?? 1 },
          `${n} ${JSON.stringify({ ...options, extraTokens, globalTokens })}`,
        );
      }
    }
    assertSame(masks.bigbird(500, { extraTokens: 0 }), masks.bigbird(500));
  });

  test('refuses tokens that there are not', () => {
    assertThrows(() => masks.bigbird(9, { extraTokens: 10 }), 'option', /extraTokens is 10 but the length is 9/);
    assertThrows(() => masks.bigbird(9, { extraTokens: -1 }), 'option', /extraTokens.*got -1/);
    assertThrows(() => masks.bigbird(9, { globalTokens: [9] }), 'option', /globalTokens\[0\].*between 0 and 8, got 9/);
    assertThrows(() => any.bigbird(9, { globalTokens: 3 }), 'type', /globalTokens must be an array/);
  });
});
