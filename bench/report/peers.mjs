/** Results of bench/peers as Markdown. */

import { digits } from '../js/text.mjs';

/** @typedef {import('../peers/bench.mjs').Results} Results */
/** @typedef {import('../peers/summary.mjs').Entry} Entry */
/** @typedef {import('../peers/summary.mjs').ShapeResult} ShapeResult */

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {boolean} ours
 * @property {(entry: Entry) => boolean} holds
 */

/** @type {Record<string, string>} */
const TITLES = { '@tensorflow/tfjs-backend-wasm': 'tfjs', '@jax-js/jax': 'jax-js' };

/** @param {string} library */
const titleOf = (library) => TITLES[library] ?? library;

/** @param {ShapeResult[]} shapes @returns {Column[]} each way of sdpa, and each other library */
function columnsOf(shapes) {
  const entries = shapes.flatMap((shape) => shape.entries);
  const ways = new Set(entries.filter(({ library }) => library === 'sdpa').map(({ way }) => way));
  const libraries = new Set(entries.filter(({ library }) => library !== 'sdpa').map(({ library }) => library));
  return [
    ...[...ways].map((way) => ({
      title: `sdpa ${way}`,
      ours: true,
      holds: (/** @type {Entry} */ entry) => entry.library === 'sdpa' && entry.way === way,
    })),
    ...[...libraries].map((library) => ({
      title: titleOf(library),
      ours: false,
      holds: (/** @type {Entry} */ entry) => entry.library === library,
    })),
  ];
}

/** @param {readonly Entry[]} entries @returns {(Entry & { ms: number, gflops: number }) | undefined} */
function fastest(entries) {
  /** @type {any[]} */
  const timed = entries.filter(({ ms }) => ms !== undefined);
  return timed.sort((a, b) => a.ms - b.ms)[0];
}

/** @param {Entry[]} entries of one column at one shape @param {number | undefined} least ms of the whole row */
function cell(entries, least) {
  const best = fastest(entries);
  if (best) {
    const time = `${best.noisy ? '~' : ''}${digits(best.ms)}`;
    const way = entries.length > 1 ? ` ${best.way}` : '';
    return `${best.ms === least ? `**${time}**` : time} (${digits(best.gflops)})${way}`;
  }
  if (entries.some(({ failed }) => failed !== undefined)) return 'fails';
  return entries.length ? 'wrong' : '–';
}

/** @param {ShapeResult} shape @returns {string} e.g. `32/8 heads, 512², D 128, causal` */
export function describe({ name }) {
  const found = /\/(dense|causal)\/B:(\d+)\/H:(\d+)\/Hkv:(\d+)\/Sq:(\d+)\/Skv:(\d+)\/D:(\d+)$/.exec(name);
  if (!found) return name;
  const [option, batch, heads, kvHeads, rows, keys, headDim] = found.slice(1);
  return [
    ...(batch === '1' ? [] : [`batch ${batch}`]),
    `${heads === kvHeads ? heads : `${heads}/${kvHeads}`} ${heads === '1' ? 'head' : 'heads'}`,
    rows === keys ? `${rows}²` : `${rows}×${keys}`,
    `D ${headDim}`,
    ...(option === 'causal' ? ['causal'] : []),
  ].join(', ');
}

/**
 * @param {ShapeResult} shape
 * @param {Column[]} columns
 * @returns {string[]} cells
 */
function row(shape, columns) {
  const { nickname, entries } = shape;
  const least = fastest(entries)?.ms;
  const peer = fastest(entries.filter(({ library }) => library !== 'sdpa'));
  return [
    `\`${nickname}\`: ${describe(shape)}`,
    ...columns.map(({ holds }) => cell(entries.filter(holds), least)),
    ...columns
      .filter(({ ours }) => ours)
      .map(({ holds }) => {
        const own = fastest(entries.filter(holds));
        return own && peer ? digits(peer.ms / own.ms) : '–';
      }),
  ];
}

/** @param {string[]} head @param {string[][]} rows */
function table(head, rows) {
  /** @param {string[]} cells */
  const line = (cells) => `| ${cells.map((one) => one.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i ? '---:' : '---'))), ...rows.map(line)];
}

/** @param {Entry} entry @returns {string | undefined} why it has no timing */
function trouble({ failed, wrong }) {
  if (failed !== undefined) return `fails: \`${failed.replaceAll('`', "'")}\``;
  if (wrong === undefined) return undefined;
  return `wrong: ${wrong === null ? 'numbers that are not finite' : `error ${wrong.toExponential(1)}`}`;
}

/** @param {ShapeResult[]} shapes @returns {string[]} one line for each way of a library that fails alike */
function troubles(shapes) {
  /** @type {Map<string, { who: string, what: string, at: string[] }>} */
  const found = new Map();
  for (const { nickname, entries } of shapes) {
    for (const entry of entries) {
      const what = trouble(entry);
      if (what === undefined) continue;
      const alone = entries.filter(({ library }) => library === entry.library).length === 1;
      const who = alone ? titleOf(entry.library) : `${titleOf(entry.library)} ${entry.way}`;
      const known = found.get(`${who} ${what}`) ?? { who, what, at: [] };
      known.at.push(nickname);
      found.set(`${who} ${what}`, known);
    }
  }
  return [...found.values()].map(({ who, what, at }) => {
    const where = at.length === shapes.length ? 'everywhere' : `at ${at.map((name) => `\`${name}\``).join(', ')}`;
    return `- ${who} ${where} ${what}`;
  });
}

/** @param {Results} results @returns {string} */
function provenance({ environment, pace }) {
  const { machine, versions, date, commit, command } = environment;
  const { sdpa, ...others } = versions;
  const list = Object.entries(others).map(([name, version]) => `${titleOf(name)} ${version}`);
  const at = `${commit.slice(0, 10)}${commit.endsWith('-dirty') ? ' with changes' : ''}`;
  return (
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}; sdpa ${sdpa} at ${at}, ${list.join(', ')}; one thread, ` +
    `medians of up to ${pace.rounds} turns; ${date.slice(0, 10)}; \`${command}\``
  );
}

/** @param {Results} results @returns {string[]} lines */
function engineReport(results) {
  const { engine, shapes } = results;
  const columns = columnsOf(shapes);
  const noisy = shapes.some(({ entries }) => entries.some((entry) => entry.noisy));
  const ratios = columns.filter(({ ours }) => ours).map(({ title }) => `best other / ${title}`);
  const lines = troubles(shapes);
  return [
    `**${engine}**, ms (GFLOP/s), the fastest in bold:`,
    '',
    ...table(
      ['shape', ...columns.map(({ title }) => title), ...ratios],
      shapes.map((shape) => row(shape, columns)),
    ),
    '',
    ...(noisy ? ['~ Other processes ran meanwhile.', ''] : []),
    ...(lines.length ? [...lines, ''] : []),
    provenance(results),
    '',
  ];
}

/** @param {string} engine */
const rank = (engine) => ['Node', 'Chromium', 'native'].findIndex((name) => engine.startsWith(name));

/**
 * @param {readonly Results[]} results of some engines
 * @returns {string} Markdown: a table for each
 */
export function peersReport(results) {
  const sorted = [...results].sort(
    (a, b) => rank(a.engine) - rank(b.engine) || b.engine.localeCompare(a.engine, 'en', { numeric: true }),
  );
  return `${sorted.flatMap(engineReport).join('\n').trim()}\n`;
}
