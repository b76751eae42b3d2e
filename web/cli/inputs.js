// The tensors of a command, by their roles, out of one file or several.

import { allocateFloats } from './arrays.js';
import { parseIntegers } from './arguments.js';
import { openTensorFile } from './input-files.js';
import { chooseTensor, listNames } from './roles.js';
import { UsageError } from './usage-error.js';

/** @import { FileTensor } from '../io/index.js' */
/** @import { TensorFile } from './input-files.js' */
/** @import { Role } from './roles.js' */

/**
 * @param {Record<string, any>} flags
 * @param {{ needed: readonly Role[], optional: readonly Role[] }} roles
 * @param {(text: string) => unknown} note
 * @returns {Promise<{ tensors: Partial<Record<Role, FileTensor>>, lengths: { queryLengths?: Int32Array, kvLengths?: Int32Array } }>}
 */
export async function readInputs(flags, { needed, optional }, note) {
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
  for (const role of [...needed, ...optional]) {
    const tensor = await readRole(role, flags, asked.get(role), { open: openOnce, optional: optional.includes(role) });
    if (tensor) tensors[role] = tensor;
    else if (needed.includes(role)) {
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
 * @param {{ open: (path: string, flag: string) => Promise<TensorFile>, optional: boolean }} how
 * @returns {Promise<FileTensor | undefined>} undefined where no file is named that has it
 */
async function readRole(role, flags, asked, { open, optional }) {
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
  if (!own && optional) return undefined;
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
