/**
 * ONNX models of one attention each, in every way that onnxruntime has for it. Inputs and outputs have fixed shapes.
 * Field numbers are those of onnx.proto; operators are described in ONNX's Operators.md and onnxruntime's ContribOperators.md.
 */

import { bytesField, floatField, integerField, message, rawFloat, rawInt64, stringField } from './protobuf.mjs';

/** @typedef {import('../js/cases.mjs').Case} Case */

/** TensorProto.DataType */
const FLOAT = 1;
const INT32 = 6;
const INT64 = 7;

/** AttributeProto.AttributeType */
const ATTRIBUTE_FLOAT = 1;
const ATTRIBUTE_INT = 2;
const ATTRIBUTE_INTS = 7;

const IR_VERSION = 10;
const CONTRIB = 'com.microsoft';

/** @param {Case} c */
const scaleOf = ({ headDim }) => 1 / Math.sqrt(headDim);

/** @param {string} name @param {number} value */
const floatAttribute = (name, value) =>
  message(stringField(1, name), floatField(2, value), integerField(20, ATTRIBUTE_FLOAT));

/** @param {string} name @param {number} value */
const intAttribute = (name, value) =>
  message(stringField(1, name), integerField(3, value), integerField(20, ATTRIBUTE_INT));

/** @param {string} name @param {number[]} values */
const intsAttribute = (name, values) =>
  message(stringField(1, name), ...values.map((value) => integerField(8, value)), integerField(20, ATTRIBUTE_INTS));

/**
 * @param {string} operator
 * @param {string[]} inputs '' for one that is left out
 * @param {string[]} outputs
 * @param {Uint8Array[]} [attributes]
 * @param {string} [domain]
 */
const node = (operator, inputs, outputs, attributes = [], domain = '') =>
  message(
    ...inputs.map((name) => stringField(1, name)),
    ...outputs.map((name) => stringField(2, name)),
    stringField(3, `${operator} of ${outputs[0]}`),
    stringField(4, operator),
    ...attributes.map((attribute) => bytesField(5, attribute)),
    stringField(7, domain),
  );

/** @param {string} name @param {(number | string)[]} dims names for sizes that only a run tells @param {number} [type] */
function valueInfo(name, dims, type = FLOAT) {
  const shape = message(
    ...dims.map((size) => bytesField(1, typeof size === 'string' ? stringField(2, size) : integerField(1, size))),
  );
  const tensor = message(integerField(1, type), bytesField(2, shape));
  return message(stringField(1, name), bytesField(2, bytesField(1, tensor)));
}

/** @param {string} name @param {number} value */
const floatConstant = (name, value) =>
  message(integerField(2, FLOAT), stringField(8, name), bytesField(9, rawFloat(value)));

/** @param {string} name @param {number[]} values */
const int64Constant = (name, values) =>
  message(
    integerField(1, values.length),
    integerField(2, INT64),
    stringField(8, name),
    bytesField(9, message(...values.map(rawInt64))),
  );

/**
 * @param {object} graph
 * @param {number} graph.opset of ai.onnx
 * @param {Uint8Array[]} graph.nodes
 * @param {Uint8Array[]} graph.inputs
 * @param {Uint8Array[]} graph.outputs
 * @param {Uint8Array[]} [graph.constants]
 */
function model({ opset, nodes, inputs, outputs, constants = [] }) {
  const graph = message(
    ...nodes.map((one) => bytesField(1, one)),
    stringField(2, 'attention'),
    ...constants.map((one) => bytesField(5, one)),
    ...inputs.map((one) => bytesField(11, one)),
    ...outputs.map((one) => bytesField(12, one)),
  );
  /** @param {string} domain @param {number} version */
  const operatorSet = (domain, version) => bytesField(8, message(stringField(1, domain), integerField(2, version)));
  return message(integerField(1, IR_VERSION), bytesField(7, graph), operatorSet('', opset), operatorSet(CONTRIB, 1));
}

/** @param {Case} c query, key and value (B, H, L, D) */
function fourDimensional({ batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim }) {
  const key = [batch, numKvHeads, seqlenKv, headDim];
  return {
    inputs: [valueInfo('query', [batch, numHeads, seqlenQ, headDim]), valueInfo('key', key), valueInfo('value', key)],
    outputs: [valueInfo('out', [batch, numHeads, seqlenQ, headDim])],
  };
}

/**
 * ai.onnx Attention.
 * @param {Case} c
 * @param {23 | 24} opset
 */
export const attentionModel = (c, opset) =>
  model({
    opset,
    nodes: [
      node(
        'Attention',
        ['query', 'key', 'value'],
        ['out'],
        [intAttribute('is_causal', Number(c.option === 'causal')), floatAttribute('scale', scaleOf(c))],
      ),
    ],
    ...fourDimensional(c),
  });

/**
 * com.microsoft MultiHeadAttention: query (B, L, H·D), key and value the same or, with `keyByHead`, (B, H, S, D); as many
 * heads of keys as of queries.
 * @param {Case} c
 * @param {boolean} keyByHead
 */
export function multiHeadAttentionModel(c, keyByHead) {
  const { batch, numHeads, seqlenQ, seqlenKv, headDim, option } = c;
  const width = numHeads * headDim;
  const key = keyByHead ? [batch, numHeads, seqlenKv, headDim] : [batch, seqlenKv, width];
  return model({
    opset: 17,
    nodes: [
      node(
        'MultiHeadAttention',
        ['query', 'key', 'value'],
        ['out'],
        [
          intAttribute('num_heads', numHeads),
          intAttribute('unidirectional', Number(option === 'causal')),
          floatAttribute('scale', scaleOf(c)),
        ],
        CONTRIB,
      ),
    ],
    inputs: [valueInfo('query', [batch, seqlenQ, width]), valueInfo('key', key), valueInfo('value', key)],
    outputs: [valueInfo('out', [batch, seqlenQ, width])],
  });
}

/**
 * com.microsoft GroupQueryAttention, which is always causal: the last `seqlenQ` keys and values arrive with the queries as
 * (B, L, Hkv·D), those before them as past (B, Hkv, S - L, D).
 * @param {Case} c
 */
export function groupQueryAttentionModel(c) {
  const { batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim } = c;
  const past = [batch, numKvHeads, seqlenKv - seqlenQ, headDim];
  const hasPast = seqlenKv > seqlenQ;
  const fresh = [batch, seqlenQ, numKvHeads * headDim];
  const present = [batch, numKvHeads, 'total_sequence_length', headDim];
  const pastNames = hasPast ? ['past_key', 'past_value'] : ['', ''];
  return model({
    opset: 17,
    nodes: [
      node(
        'GroupQueryAttention',
        ['query', 'key', 'value', ...pastNames, 'seqlens_k', 'total_sequence_length'],
        ['out', 'present_key', 'present_value'],
        [
          intAttribute('num_heads', numHeads),
          intAttribute('kv_num_heads', numKvHeads),
          floatAttribute('scale', scaleOf(c)),
        ],
        CONTRIB,
      ),
    ],
    inputs: [
      valueInfo('query', [batch, seqlenQ, numHeads * headDim]),
      valueInfo('key', fresh),
      valueInfo('value', fresh),
      ...(hasPast ? [valueInfo('past_key', past), valueInfo('past_value', past)] : []),
      valueInfo('seqlens_k', [batch], INT32),
      valueInfo('total_sequence_length', [1], INT32),
    ],
    outputs: [
      valueInfo('out', [batch, seqlenQ, numHeads * headDim]),
      valueInfo('present_key', present),
      valueInfo('present_value', present),
    ],
  });
}

/**
 * What exporters write where there is no attention operator: Transpose, MatMul, Mul, Add of a mask (L, S) when causal,
 * Softmax, MatMul. Grouped heads through a fifth dimension, over which MatMul broadcasts.
 * @param {Case} c
 */
export function composedModel(c) {
  const { batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim, option } = c;
  const group = numHeads / numKvHeads;
  const grouped = group > 1;
  const causal = option === 'causal';
  const [query, key, value, out] = grouped ? ['query5', 'key5', 'value5', 'out5'] : ['query', 'key', 'value', 'out'];
  const { inputs, outputs } = fourDimensional(c);
  return model({
    opset: 17,
    constants: [
      floatConstant('scale', scaleOf(c)),
      ...(grouped
        ? [
            int64Constant('query_shape', [batch, numKvHeads, group, seqlenQ, headDim]),
            int64Constant('key_shape', [batch, numKvHeads, 1, seqlenKv, headDim]),
            int64Constant('out_shape', [batch, numHeads, seqlenQ, headDim]),
          ]
        : []),
    ],
    nodes: [
      ...(grouped
        ? [
            node('Reshape', ['query', 'query_shape'], [query]),
            node('Reshape', ['key', 'key_shape'], [key]),
            node('Reshape', ['value', 'key_shape'], [value]),
          ]
        : []),
      node('Transpose', [key], ['transposed'], [intsAttribute('perm', grouped ? [0, 1, 2, 4, 3] : [0, 1, 3, 2])]),
      node('MatMul', [query, 'transposed'], ['products']),
      node('Mul', ['products', 'scale'], ['scores']),
      ...(causal ? [node('Add', ['scores', 'mask'], ['masked'])] : []),
      node('Softmax', [causal ? 'masked' : 'scores'], ['weights'], [intAttribute('axis', -1)]),
      node('MatMul', ['weights', value], [out]),
      ...(grouped ? [node('Reshape', [out, 'out_shape'], ['out'])] : []),
    ],
    inputs: [...inputs, ...(causal ? [valueInfo('mask', [seqlenQ, seqlenKv])] : [])],
    outputs,
  });
}
