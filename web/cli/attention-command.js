// `sdpa attention`: tensors from files, one call, results to files.

import { setImmediate } from 'node:timers/promises';
import { allocateFloats } from './arrays.js';
import { load } from '../index.js';
import { makeCall, resultShapes } from './call.js';
import { readInputs } from './inputs.js';
import { checkOutput, formatOutput, planOutputs, writeOutputs } from './output-files.js';
import { createProgress } from './progress.js';
import { computeSlices, rowsPerSlice } from './slices.js';
import { writeAll } from './streams.js';
import { UsageError } from './usage-error.js';

/** @import { Role } from './roles.js' */
/** @typedef {{ stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream }} Streams */

/** @type {{ needed: Role[], optional: Role[] }} */
const kRoles = { needed: ['query', 'key', 'value'], optional: ['mask', 'bias'] };

/**
 * @param {Record<string, any>} flags
 * @param {Streams} streams
 */
export async function runAttention(flags, { stdout, stderr }) {
  const note = (/** @type {string} */ text) => flags.quiet || stderr.write(`${text}\n`);
  const outputs = planResults(flags, stdout);
  const inputs = ['query', 'key', 'value', 'input', 'mask', 'bias'].map((name) => flags[name]).filter(Boolean);
  for (const output of outputs) await checkOutput(output, inputs);
  const { tensors, lengths } = await readInputs(flags, kRoles, note);
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
  const bar = await createProgress(stderr, { label: 'attention', total, unit: 'query rows', wanted });
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
