// Reads the case files of tests/cases (formats: tests/cases/README.md).
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { fromBits, isHalf, roundTo, toBits } from './half-values.mjs';

const ROOT = new URL('../../cases/', import.meta.url);

/** Names of the case files of one folder, sorted. */
export function listCaseFiles(folder) {
  return readdirSync(new URL(`${folder}/`, ROOT))
    .filter((name) => /\.json(\.gz)?$/.test(name))
    .sort();
}

/** The parsed JSON of one case file. */
export function readCaseFile(folder, file) {
  const bytes = readFileSync(fileURLToPath(new URL(`${folder}/${file}`, ROOT)));
  return JSON.parse((file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8'));
}

/**
 * One "sdpa-case-1" case with each tensor's elements as exact values: `inputs` and `outputs` are keyed by formal name.
 */
export function readOperatorCase(folder, file) {
  const parsed = readCaseFile(folder, file);
  const byName = (tensors) => Object.fromEntries(tensors.filter(Boolean).map((t) => [t.name, decode(t)]));
  return { ...parsed, inputs: byName(parsed.inputs), outputs: byName(parsed.outputs) };
}

/** Elements of a `{ shape, data }` whose data may hold "NaN" and the infinities as strings. */
export function numbers(tensor) {
  return Float64Array.from(tensor.data, Number);
}

function decode(tensor) {
  const { name, dtype, shape, tolerance } = tensor;
  const count = shape.reduce((product, extent) => product * extent, 1);
  const values = tensor.b64 === undefined ? numbers(tensor) : decodeBase64(tensor.b64, dtype, count);
  if (values.length !== count) throw new Error(`${name}: ${values.length} values for shape [${shape}]`);
  // Decimal text names a value of the dtype only after rounding to it.
  for (let i = 0; i < count; ++i) values[i] = roundTo(dtype, values[i]);
  return { name, dtype, shape, tolerance, values };
}

function decodeBase64(text, dtype, count) {
  const bytes = Buffer.from(text, 'base64');
  const at = {
    float32: (i) => bytes.readFloatLE(4 * i),
    float16: (i) => fromBits('float16', bytes.readUInt16LE(2 * i)),
    bfloat16: (i) => fromBits('bfloat16', bytes.readUInt16LE(2 * i)),
    int64: (i) => Number(bytes.readBigInt64LE(8 * i)),
    int32: (i) => bytes.readInt32LE(4 * i),
    bool: (i) => bytes[i],
  }[dtype];
  if (at === undefined) throw new Error(`no decoder for dtype ${dtype}`);
  return Float64Array.from({ length: count }, (_, i) => at(i));
}

/** A tensor as a caller of the library would hold it: `{ data, shape, dtype }`, 16-bit floats as Uint16Array. */
export function toTensor({ dtype, shape, values }) {
  if (isHalf(dtype)) return { data: Uint16Array.from(values, (x) => toBits(dtype, x)), shape, dtype };
  switch (dtype) {
    case 'float32':
      return { data: Float32Array.from(values), shape, dtype };
    case 'bool':
      return { data: Uint8Array.from(values), shape, dtype };
    case 'int64':
      return { data: BigInt64Array.from(values, (x) => BigInt(x)), shape, dtype };
    case 'int32':
      return { data: Int32Array.from(values), shape, dtype };
    default:
      throw new Error(`no array type for dtype ${dtype}`);
  }
}

/** Elements of a library tensor as exact values. */
export function valuesOf({ data, dtype }) {
  return isHalf(dtype) && data instanceof Uint16Array
    ? Float64Array.from(data, (bits) => fromBits(dtype, bits))
    : Float64Array.from(data, Number);
}
