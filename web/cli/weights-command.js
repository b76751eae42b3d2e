// `sdpa weights`: tensors from files, parts and summaries of the weights to files, and a picture of their map.

import { AttentionError, load } from '../index.js';
import { explainRefusal, scoreOptions } from './call.js';
import { readInputs } from './inputs.js';
import { drawMap } from './map-picture.js';
import { checkOutput, formatOutput, planOutputs, writeOutputs } from './output-files.js';
import { createProgress } from './progress.js';
import { writeAll } from './streams.js';
import { UsageError } from './usage-error.js';

/** @import { FileTensor } from '../io/index.js' */
/** @import { Role } from './roles.js' */
/** @import { WeightsOptions, WeightsResult } from '../index.js' */
/** @typedef {{ stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream }} Streams */

/** @type {{ needed: Role[], optional: Role[] }} */
const kRoles = { needed: ['query', 'key'], optional: ['mask', 'bias', 'lse'] };

/** Errors that are told in the words of the command line. */
const kInputCodes = ['type', 'shape', 'option', 'align-required'];

/** Arrays of each result. */
const kArrays = {
  rows: ['rows'],
  columns: ['columns'],
  'column-sums': ['column_sums'],
  'top-k': ['topk_values', 'topk_indices'],
  stats: ['entropy', 'max_weight', 'max_index'],
  pool: ['pool'],
};

/**
 * @param {Record<string, any>} flags
 * @param {Streams} streams
 */
export async function runWeights(flags, { stdout, stderr }) {
  const note = (/** @type {string} */ text) => flags.quiet || stderr.write(`${text}\n`);
  const plan = planResults(flags, stdout);
  const inputs = ['query', 'key', 'input', 'mask', 'bias', 'lse'].map((name) => flags[name]).filter(Boolean);
  for (const output of plan) await checkOutput(output, inputs);
  const { tensors, lengths } = await readInputs(flags, kRoles, note);
  const sizes = { query: sizesOf(tensors.query, flags.layout), key: sizesOf(tensors.key, flags.layout) };
  const options = makeOptions(tensors, flags, lengths, sizes);
  const maps = sizes.query.batch * (options.heads?.length ?? sizes.query.heads);
  if (flags.png !== undefined && maps !== 1) {
    throw new UsageError(`--png draws one map, but there are ${maps}: choose one with --heads, of one batch entry`);
  }

  const started = performance.now();
  const sdpa = await load({ variant: flags.variant });
  /** @type {ReturnType<typeof createProgress> | undefined} */
  let bar;
  let result;
  try {
    const onProgress = (/** @type {{ done: number, total: number }} */ { done, total }) => {
      bar ??= createProgress(stderr, { label: 'weights', total, unit: 'query rows', wanted: !flags.quiet });
      void bar.then(({ update }) => update(done));
    };
    result = await sdpa.attentionWeightsAsync(/** @type {any} */ (tensors.query), /** @type {any} */ (tensors.key), {
      ...options,
      onProgress,
    });
  } catch (error) {
    throw AttentionError.is(error) && kInputCodes.includes(error.code) ? explainRefusal(error, tensors, flags) : error;
  } finally {
    (await bar)?.stop();
    sdpa.dispose();
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(2);

  const arrays = namedArrays(result);
  const files = plan.map(({ flag, path, names, format }) => {
    const own = Object.fromEntries(names.map((name) => [name, arrays[name]]));
    const content = format === undefined ? draw(arrays.pool) : formatOutput({ flag, path, format, tensors: own });
    return { flag, path, names, content };
  });
  await writeOutputs(files.filter(({ path }) => path !== '-'));
  for (const { path, content } of files) if (path === '-') await writeAll(stdout, content);
  const written = files.flatMap(({ path, names }) =>
    names.map((name) => `${name} [${arrays[name].shape.join(', ')}] to ${path === '-' ? 'the standard output' : path}`),
  );
  note(`${written.join(', ')} (${sdpa.variant} build, ${seconds} s)`);

  /** @param {{ data: any, shape: number[] }} pool */
  function draw({ data, shape }) {
    const [rows, columns] = shape.slice(-2);
    const { 'pool-kind': kind = 'mean', 'png-scale': scale = 'linear' } = flags;
    return drawMap({ data, rows, columns }, { kind, scale, queries: sizes.query.rows, keys: sizes.key.rows });
  }
}

/**
 * @param {Record<string, any>} flags
 * @param {NodeJS.WriteStream} stdout
 * @returns {{ flag: string, path: string, names: string[], format?: import('./output-files.js').Format }[]} without a format: the picture
 */
function planResults(flags, stdout) {
  const wanted = Object.keys(kArrays).filter((name) => flags[name] !== undefined);
  if (wanted.length === 0) {
    throw new UsageError(`nothing is asked for: give one of --${Object.keys(kArrays).join(', --')}`);
  }
  if (flags.out === undefined && flags.png === undefined) {
    throw new UsageError('--out FILE is missing: where the results go (or --png FILE, for the picture of a map)');
  }
  if (flags.png !== undefined && !flags.pool) throw new UsageError('--png draws the map of --pool: add --pool 512');
  if (flags['pool-kind'] && !flags.pool) throw new UsageError('--pool-kind needs --pool');
  if (flags['png-scale'] && flags.png === undefined) throw new UsageError('--png-scale needs --png');
  const names = wanted.flatMap((name) => kArrays[/** @type {keyof typeof kArrays} */ (name)]);
  const single = flags.out !== undefined && !/\.(npz|safetensors)$/i.test(flags.out);
  if (single && names.length > 1) {
    throw new UsageError(
      `--out ${flags.out} holds one array, but there are ${names.length}: ${names.join(', ')}; a .npz or .safetensors file holds several`,
    );
  }
  if (flags.out === '-' && stdout.isTTY) {
    throw new UsageError(
      'a terminal cannot show the bytes of an array: send the standard output to a file or a program',
    );
  }
  const results = flags.out === undefined ? [] : names.map((name) => ({ flag: '--out', path: flags.out, name }));
  const pictures = flags.png === undefined ? [] : [{ flag: '--png', path: flags.png, names: ['pool'] }];
  return [...planOutputs(results), ...pictures];
}

/**
 * @param {Partial<Record<Role, FileTensor>>} tensors
 * @param {Record<string, any>} flags
 * @param {{ queryLengths?: Int32Array, kvLengths?: Int32Array }} lengths
 * @param {{ query: Sizes, key: Sizes }} sizes
 * @returns {WeightsOptions}
 */
function makeOptions(tensors, flags, lengths, { query, key }) {
  const { rows, columns, pool } = flags;
  return /** @type {any} */ ({
    ...scoreOptions(tensors, flags, lengths),
    lse: tensors.lse,
    heads: flags.heads?.(query.heads),
    rows: rows?.(query.rows),
    columns: columns?.(key.rows),
    columnSums: flags['column-sums'],
    topK: flags['top-k'],
    stats: flags.stats,
    pool: pool && { ...pool, kind: flags['pool-kind'] ?? 'mean' },
  });
}

/** @typedef {{ batch: number, heads: number, rows: number }} Sizes */

/**
 * Where the rank is none that there is, the call will say so.
 * @param {FileTensor | undefined} tensor
 * @param {string} [layout]
 * @returns {Sizes}
 */
function sizesOf(tensor, layout) {
  const shape = tensor?.shape ?? [];
  const rank = shape.length;
  const blhd = layout === 'blhd' && rank > 2;
  return {
    batch: rank > 3 ? shape[0] : 1,
    heads: rank > 2 ? shape[blhd ? rank - 2 : rank - 3] : 1,
    rows: shape[blhd ? rank - 3 : rank - 2] ?? 0,
  };
}

/**
 * @param {WeightsResult<any>} result
 * @returns {Record<string, { data: any, shape: number[], dtype: string }>}
 */
function namedArrays({ rows, columns, columnSums, topK, stats, pool }) {
  const arrays = {
    rows,
    columns,
    column_sums: columnSums,
    topk_values: topK?.values,
    topk_indices: topK?.indices,
    entropy: stats?.entropy,
    max_weight: stats?.maxWeight,
    max_index: stats?.maxIndex,
    pool,
  };
  return /** @type {any} */ (Object.fromEntries(Object.entries(arrays).filter(([, array]) => array)));
}
