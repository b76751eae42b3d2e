// Settings drawn from a seeded generator until every pair of values of two axes has met.
import { uniform } from './random.mjs';

/**
 * @param {Record<string, unknown[]>} axes name and values of each
 * @param {{ seed: number, first: number, fits?: (setting: any) => boolean }} options `first` settings are kept in any case; after
 *   them, those in which two values meet for the first time. What does not fit is passed over.
 */
export function drawMixtures(axes, { seed: start, first, fits = () => true }) {
  const next = uniform(start);
  const met = new Set();
  const drawn = [];
  for (let seed = 0; seed < 10000; ++seed) {
    const setting = { seed };
    for (const [name, values] of Object.entries(axes)) setting[name] = values[Math.floor(next() * values.length)];
    if (!fits(setting)) continue;
    const pairs = pairsOf(axes, setting);
    if (drawn.length >= first && pairs.every((pair) => met.has(pair))) continue;
    for (const pair of pairs) met.add(pair);
    drawn.push(setting);
  }
  return drawn;
}

/** Pairs of values that the settings hold. */
export function countPairs(axes, settings) {
  return new Set(settings.flatMap((setting) => pairsOf(axes, setting))).size;
}

/** Pairs of values that there are, less those that can never meet. */
export function allPairs(axes, fits = () => true) {
  const entries = Object.entries(axes);
  let count = 0;
  entries.forEach(([one, values], i) => {
    for (const [other, others] of entries.slice(i + 1)) {
      for (const a of values) for (const b of others) if (fits({ [one]: a, [other]: b })) ++count;
    }
  });
  return count;
}

function pairsOf(axes, setting) {
  const chosen = Object.entries(axes).map(([name, values]) => `${name} ${values.indexOf(setting[name])}`);
  return chosen.flatMap((a, i) => chosen.slice(i + 1).map((b) => `${a}, ${b}`));
}
