// Reads what tests need of an ONNX file: its nodes, and the tensors of its Constant nodes. Field numbers: onnx.proto of
// github.com/onnx/onnx. A message is a row of fields, each a number (field · 8 + wire type) and a value.

const WIRE_VARINT = 0;
const WIRE_64_BITS = 1;
const WIRE_LENGTH = 2;
const WIRE_32_BITS = 5;

const FLOAT = 1;

/**
 * @param {Uint8Array} bytes of one message
 * @returns {Generator<[number, bigint | Uint8Array]>} fields in order; numbers of fixed size as their bytes
 */
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('the file ends within a number');
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const take = (/** @type {number} */ length) => {
    if (at + length > bytes.length) throw new Error(`the file ends within a field of ${length} bytes`);
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    if (wire === WIRE_VARINT) yield [tag >> 3, varint()];
    else if (wire === WIRE_LENGTH) yield [tag >> 3, take(Number(varint()))];
    else if (wire === WIRE_32_BITS) yield [tag >> 3, take(4)];
    else if (wire === WIRE_64_BITS) yield [tag >> 3, take(8)];
    else throw new Error(`wire type ${wire}`);
  }
}

/** @param {Uint8Array} bytes @param {number} wanted @returns {any[]} the values of a repeated field */
const all = (bytes, wanted) => [...fields(bytes)].filter(([field]) => field === wanted).map(([, value]) => value);

/** @param {Uint8Array} bytes */
const text = (bytes) => new TextDecoder().decode(bytes);

/**
 * TensorProto: dims 1, data_type 2, raw_data 9.
 * @param {Uint8Array} bytes
 * @returns {{ data: Float32Array, shape: number[] } | null} null for other types than float32
 */
function readTensor(bytes) {
  const shape = all(bytes, 1).map(Number);
  const [raw] = all(bytes, 9);
  if (Number(all(bytes, 2)[0]) !== FLOAT || raw === undefined) return null;
  // A copy, because the elements need not be aligned in the file.
  return { data: new Float32Array(raw.slice().buffer), shape };
}

/**
 * ModelProto: graph 7; GraphProto: node 1; NodeProto: input 1, output 2, op_type 4, attribute 5; AttributeProto: t 5.
 * @param {Uint8Array} file
 * @returns {{ nodes: { op: string, inputs: string[], outputs: string[] }[], tensors: Map<string, { data: Float32Array, shape: number[] }> }}
 *   tensors of float32 by the name that the nodes use
 */
export function readOnnx(file) {
  const nodes = [];
  const tensors = new Map();
  for (const node of all(all(file, 7)[0], 1)) {
    const [inputs, outputs] = [all(node, 1).map(text), all(node, 2).map(text)];
    const op = text(all(node, 4)[0]);
    nodes.push({ op, inputs, outputs });
    if (op !== 'Constant') continue;
    const [value] = all(node, 5).flatMap((attribute) => all(attribute, 5));
    const tensor = value && readTensor(value);
    if (tensor) tensors.set(outputs[0], tensor);
  }
  return { nodes, tensors };
}
