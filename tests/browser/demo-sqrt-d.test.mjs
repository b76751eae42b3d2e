// The section about the scale.

import assert from 'node:assert/strict';
import { browserTest, withModules } from './helpers/demo.mjs';
import { atSection, eventually, hashOf, openTable } from './helpers/sections.mjs';

const files = ['sections/sqrt-d/measure', 'parts/pace'];

browserTest('logits, entropy, largest weight and gradient are those of the formulas in float64', async () => {
  const found = await withModules(files, async ({ load, drawInputs, measure, drawn, sizes, Pace }) => {
    const sdpa = await load();
    const inputs = await drawInputs(new Pace());
    const { queries, keys, valueDim } = sizes;
    const { query, key, value, dOut } = inputs;
    const [, width] = query.shape;
    const dot = (
      /** @type {any} */ a,
      /** @type {number} */ i,
      /** @type {any} */ b,
      /** @type {number} */ j,
      /** @type {number} */ D,
    ) => {
      let sum = 0;
      for (let d = 0; d < D; d++) sum += a.data[i * a.shape[1] + d] * b.data[j * b.shape[1] + d];
      return sum;
    };
    return [
      [4, 1],
      [64, 0.125],
      [64, 1],
      [256, 1],
      [width, width ** -0.5],
    ].map(([D, scale]) => {
      const entropies = [];
      const largest = [];
      const gradients = [];
      const weights = [];
      for (let i = 0; i < queries; i++) {
        const logits = Array.from({ length: keys }, (_, j) => scale * dot(query, i, key, j, D));
        const max = Math.max(...logits);
        const powers = logits.map((logit) => Math.exp(logit - max));
        const sum = powers.reduce((a, b) => a + b);
        const p = powers.map((power) => power / sum);
        const dP = p.map((_, j) => dot(dOut, i, value, j, valueDim));
        const mean = p.reduce((total, weight, j) => total + weight * dP[j], 0);
        entropies.push(-p.reduce((total, weight) => total + (weight > 0 ? weight * Math.log(weight) : 0), 0));
        largest.push(Math.max(...p));
        gradients.push(Math.hypot(...p.map((weight, j) => weight * (dP[j] - mean))));
        if (i < drawn) weights.push(...p);
      }
      const average = (/** @type {number[]} */ numbers) => numbers.reduce((a, b) => a + b) / numbers.length;
      const measured = measure(sdpa, inputs, D, scale);
      return {
        D,
        scale,
        entropy: [measured.entropy, average(entropies)],
        largest: [measured.largest, average(largest)],
        gradient: [measured.gradient, gradients.sort((a, b) => a - b)[queries >> 1]],
        weights: Math.max(...weights.map((weight, at) => Math.abs(weight - measured.weights[at]))),
      };
    });
  });
  for (const { D, scale, weights, ...pairs } of found) {
    for (const [name, [measured, expected]] of Object.entries(pairs)) {
      // Logits of some tens have errors of some 1e-6, and so have the powers, relatively.
      assert.ok(
        Math.abs(measured - expected) < 1e-4 * expected,
        `${name} at ${D}, ${scale}: ${measured}, not ${expected}`,
      );
    }
    assert.ok(weights < 1e-5, `weights at ${D}: ${weights}`);
  }
});

browserTest('without the scale the gradient collapses as heads grow; with it, it stays', async () => {
  const curves = await withModules(files, async ({ load, drawInputs, measure, headDims, scaleOf, Pace }) => {
    const sdpa = await load();
    const inputs = await drawInputs(new Pace());
    return [0, 0.5].map((exponent) =>
      headDims.map((/** @type {number} */ d) => measure(sdpa, inputs, d, scaleOf(d, exponent)).gradient),
    );
  });
  const [none, root] = curves;
  assert.ok(Math.max(...root) < 1.5 * Math.min(...root), root.join());
  assert.ok(none.at(-1) < 0.01 * root.at(-1), none.join());
});

browserTest('a histogram keeps every number, and its bins are of one width about zero', async () => {
  const { middles, counts } = await withModules(files, ({ histogram }) =>
    histogram(Float32Array.of(-10, -9.9, -0.1, 0, 0.1, 4, 10), 21),
  );
  assert.equal(
    counts.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b),
    7,
  );
  assert.deepEqual([counts[0], counts[10], counts[20]], [2, 3, 1]);
  assert.deepEqual([middles[0], middles[10], middles[20]], [-9.5, 0, 9.5]);
});

browserTest('a link restores both sliders, the figures follow them, and the button sets the root', async () => {
  await atSection('sqrt-d', { size: 8, exponent: 0.25 }, async ({ page, section }) => {
    const figure = async (/** @type {number} */ k) =>
      Number(await section.locator('.figures output').nth(k).getAttribute('data-value'));
    const shown = () => section.locator('.controls output').allTextContents();
    assert.deepEqual(await shown(), ['1024', 'd^−0.25']);
    // √1024 · 1024^−0.25 = 5.66.
    assert.ok(Math.abs((await figure(0)) - 5.66) < 0.3);
    await section.getByRole('button', { name: 'Divide by √d' }).click();
    assert.deepEqual(await shown(), ['1024', '1 / √d']);
    assert.ok(Math.abs((await figure(0)) - 1) < 0.05);
    assert.equal(await hashOf(page), '#sqrt-d?size=8&exponent=0.5');
    await section.locator('input[data-name="size"]').focus();
    await page.keyboard.press('Home');
    assert.equal(await hashOf(page), '#sqrt-d?size=0&exponent=0.5');
    await section.locator('.body[data-drawn="4 0.5"]').waitFor();
    // The line of what is set would lie on another, and is not named either.
    const keys = () => section.locator('.plot-key:visible').allTextContents();
    assert.deepEqual(await keys(), ['no scale', '1 / √d', 'no scale', '1 / √d']);
    // Not of the section: it is looked for within the plot below.
    const plot = page.getByRole('img', { name: /^Gradient of the logits/ });
    await eventually(async () => assert.match((await plot.getAttribute('aria-label')) ?? '', /no scale from \d/));
    assert.equal(await (await openTable(section.locator('.plot', { has: plot }))).count(), 9);
    await section.locator('input[data-name="exponent"]').focus();
    await page.keyboard.press('ArrowRight');
    await section.locator('.body[data-drawn="4 0.55"]').waitFor();
    assert.deepEqual(await keys(), ['no scale', '1 / √d', 'as set', 'no scale', '1 / √d', 'as set']);
  });
});
