// `sdpa attention`: tensors from files, one call, results to files.

import { setImmediate } from 'node:timers/promises';
import { allocateFloats } from './arrays.js';
import { load } from '../index.js';
import { parseIntegers } from './arguments.js';
import { makeCall, resultShapes } from './call.js';
import { openTensorFile } from './input-files.js';
import { checkOutput, formatOutput, planOutputs, writeOutputs } from './output-files.js';
import { createProgress } from './progress.js';
import { chooseTensor, listNames } from './roles.js';
import { computeSlices, rowsPerSlice } from './slices.js';
import { writeAll } from './streams.js';
import { UsageError } from './usage-error.js';

/** @import { FileTensor } from '../io/index.js' */
/** @import { TensorFile } from './input-files.js' */
/** @import { Role } from './roles.js' */
/** @typedef {{ stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream }} Streams */

/**
 * @param {Record<string, any>} flags
 * @param {Streams} streams
 */
export async function runAttention(flags, { stdout, stderr }) {
  const note = (/** @type {string} */ text) => flags.quiet || stderr.write(`${text}\n`);
  const outputs = planResults(flags, stdout);
  const inputs = ['query', 'key', 'value', 'input', 'mask', 'bias'].map((name) => flags[name]).filter(Boolean);
  for (const output of outputs) await checkOutput(output, inputs);
  const { tensors, lengths } = await readInputs(flags, note);
  const call = makeCall(tensors, flags, lengths);

  const started = performance.now();
  const sdpa = await load({ variant: flags.variant });
  const shapes = resultShapes(call);
  const results = {
    out: allocateFloats('out', shapes.out),
    lse: call.returnLse ? allocateFloats('lse', shapes.lse) : undefined,
    scores: call.scoresName ? allocateFloats('scores', shapes.scores) : undefined,
  };
  const rows = flags['rows-per-slice'] ?? rowsPerSlice(call);
  const total = call.batch * call.seqlenQ;
  const wanted = !flags.quiet && call.seqlenQ > 0 && total > rows;
  const bar = await createProgress(stderr, { total, unit: 'query rows', wanted });
  try {
    for (const done of computeSlices(sdpa, call, rows, results)) {
      bar.update(done);
      await setImmediate();
    }
  } finally {
    bar.stop();
    sdpa.dispose();
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(2);

  const files = outputs.map(({ names, ...file }) => ({
    ...file,
    tensors: Object.fromEntries(names.map((name) => [name, tensorOf(name)])),
  }));
  await writeOutputs(files.filter(({ path }) => path !== '-'));
  for (const file of files) if (file.path === '-') await writeAll(stdout, formatOutput(file));
  const written = files.flatMap(({ path, tensors: all }) =>
    Object.entries(all).map(
      ([name, { shape }]) => `${name} [${shape.join(', ')}] to ${path === '-' ? 'the standard output' : path}`,
    ),
  );
  note(`${written.join(', ')} (${sdpa.variant} build, ${seconds} s)`);

  /** @param {string} name */
  function tensorOf(name) {
    const key = /** @type {keyof typeof shapes} */ (name);
    return { data: /** @type {Float32Array} */ (results[key]), shape: shapes[key], dtype: 'float32' };
  }
}

/**
 * @param {Record<string, any>} flags
 * @param {NodeJS.WriteStream} stdout
 */
function planResults(flags, stdout) {
  if (flags.out === undefined) throw new UsageError('--out FILE is missing: where the result goes');
  const results = [{ flag: '--out', path: flags.out, name: 'out' }];
  if (flags.lse !== undefined) results.push({ flag: '--lse', path: flags.lse, name: 'lse' });
  if (flags['scores-out'] !== undefined && !flags.scores) {
    throw new UsageError('--scores-out needs --scores STAGE: scaled, capped, biased or weights');
  }
  if (flags.scores) {
    const path = flags['scores-out'] ?? flags.out;
    if (path === flags.out && !/\.(npz|safetensors)$/i.test(path)) {
      throw new UsageError(
        `--scores needs --scores-out FILE, because --out ${path} holds one array (a .npz or .safetensors file holds several)`,
      );
    }
    results.push({ flag: '--scores-out', path, name: 'scores' });
  }
  const outputs = planOutputs(results);
  if (outputs.some(({ path }) => path === '-') && stdout.isTTY) {
    throw new UsageError(
      'a terminal cannot show the bytes of an array: send the standard output to a file or a program',
    );
  }
  return outputs;
}

/**
 * @param {Record<string, any>} flags
 * @param {(text: string) => unknown} note
 */
async function readInputs(flags, note) {
  /** @type {Map<string, Promise<TensorFile>>} */
  const opened = new Map();
  const openOnce = (/** @type {string} */ path, /** @type {string} */ flag) => {
    const known = opened.get(path) ?? openTensorFile(path, flag);
    opened.set(path, known);
    return known;
  };
  /** @type {Map<string, string>} */
  const asked = new Map();
  for (const [role, name] of flags.name ?? []) {
    if (asked.has(role)) throw new UsageError(`--name ${role}=… is given twice`);
    asked.set(role, name);
  }
  /** @type {Partial<Record<Role, FileTensor>>} */
  const tensors = {};
  for (const role of /** @type {const} */ (['query', 'key', 'value', 'mask', 'bias'])) {
    const tensor = await readRole(role, flags, asked.get(role), openOnce);
    if (tensor) tensors[role] = tensor;
    else if (role === 'query' || role === 'key' || role === 'value') {
      throw new UsageError(
        `--${role} FILE is missing (or --input FILE, with all of them in one .npz or .safetensors file)`,
      );
    }
  }
  const lengths = {
    queryLengths: await readLengths('query-lengths', flags, openOnce),
    kvLengths: await readLengths('kv-lengths', flags, openOnce),
  };
  return { tensors: narrow(tensors, note), lengths };
}

/**
 * @param {Role} role
 * @param {Record<string, any>} flags
 * @param {string | undefined} asked
 * @param {(path: string, flag: string) => Promise<TensorFile>} open
 * @returns {Promise<FileTensor | undefined>} undefined where no file is named that has it
 */
async function readRole(role, flags, asked, open) {
  const own = flags[role] !== undefined;
  const path = own ? flags[role] : flags.input;
  if (path === undefined) {
    if (asked !== undefined) throw new UsageError(`--name ${role}=${asked} needs a file: --${role} or --input`);
    return undefined;
  }
  const flag = own ? `--${role}` : '--input';
  const file = await open(path, flag);
  if (file.single) {
    if (!own)
      throw new UsageError(
        `${flag} ${path} is a .npy file with one array without a name; give --query, --key and --value`,
      );
    if (asked !== undefined)
      throw new UsageError(`--name ${role}=${asked} does not fit --${role} ${path}, whose array has no name`);
    return file.read();
  }
  const name = chooseTensor(role, file.names, { asked, only: own, where: `${flag} ${path}` });
  if (name !== undefined) return file.read(name);
  if (!own && (role === 'mask' || role === 'bias')) return undefined;
  throw new UsageError(
    `${flag} ${path} has no tensor '${role}'${listNames(file.names)}; choose one with --name ${role}=NAME`,
  );
}

/**
 * @param {'query-lengths' | 'kv-lengths'} name
 * @param {Record<string, any>} flags
 * @param {(path: string, flag: string) => Promise<TensorFile>} open
 * @returns {Promise<Int32Array | undefined>}
 */
async function readLengths(name, flags, open) {
  const text = flags[name];
  if (text === undefined) return undefined;
  const listed = parseIntegers(text);
  if (listed) return listed;
  const where = `--${name} ${text}`;
  if (/^[\d,.\s-]+$/.test(text)) throw new UsageError(`${where}: must be whole numbers separated by commas, or a file`);
  const file = await open(text, `--${name}`);
  if (!file.single && file.names.length !== 1)
    throw new UsageError(`${where} must hold one array${listNames(file.names)}`);
  const { data, dtype } = file.read(file.names[0]);
  if (!/^u?int/.test(dtype)) throw new UsageError(`${where} holds ${dtype}; lengths are integers`);
  return Int32Array.from(/** @type {ArrayLike<number | bigint>} */ (data), (value) => {
    const number = Number(value);
    if (number !== (number | 0)) throw new UsageError(`${where} holds ${number}, which is no length`);
    return number;
  });
}

/**
 * float64 becomes float32; everything else that attention does not take is left to its own check.
 * @param {Partial<Record<Role, FileTensor>>} tensors
 * @param {(text: string) => unknown} note
 */
function narrow(tensors, note) {
  const changed = [];
  for (const [role, tensor] of Object.entries(tensors)) {
    if (tensor.dtype !== 'float64' || role === 'mask') continue;
    const wide = /** @type {Float64Array} */ (tensor.data);
    const data = allocateFloats(role, tensor.shape);
    data.set(wide);
    const lost = data.findIndex((value, i) => !Number.isFinite(value) && Number.isFinite(wide[i]));
    if (lost >= 0) throw new UsageError(`${role} holds ${wide[lost]}, which float32 cannot; clip it first`);
    tensors[/** @type {Role} */ (role)] = { data, shape: tensor.shape, dtype: 'float32' };
    changed.push(role);
  }
  if (changed.length)
    note(`note: ${changed.join(', ')} ${changed.length > 1 ? 'are' : 'is'} float64 and computed as float32`);
  return tensors;
}
