// Models for onnxruntime, byte by byte.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attentionModel, composedModel, groupQueryAttentionModel } from '../onnx-models.mjs';
import { floatField, integerField, message, rawInt64, stringField, varint } from '../protobuf.mjs';
import { shape } from './small-shape.mjs';

/** @typedef {import('../../js/cases.mjs').Case} Case */

/**
 * The fields of a message, read by the wire format's rules.
 * @param {Uint8Array} bytes
 * @returns {{ number: number, value: any }[]}
 */
function fields(bytes) {
  let at = 0;
  const integer = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(bytes[at++]);
      value |= (byte & 127n) << shift;
      if (byte < 128n) return value;
    }
  };
  const found = [];
  while (at < bytes.length) {
    const tag = Number(integer());
    const [number, wire] = [tag >> 3, tag & 7];
    if (wire === 0) found.push({ number, value: integer() });
    else if (wire === 5)
      found.push({ number, value: new DataView(bytes.buffer, bytes.byteOffset + (at += 4) - 4).getFloat32(0, true) });
    else if (wire === 2) {
      const length = Number(integer());
      found.push({ number, value: bytes.slice(at, (at += length)) });
    } else assert.fail(`wire type ${wire} of field ${number}`);
  }
  assert.equal(at, bytes.length, 'the last field ends with the message');
  return found;
}

/** @param {Uint8Array} bytes @param {number} number @returns {any[]} values of that field */
const all = (bytes, number) => fields(bytes).flatMap((field) => (field.number === number ? [field.value] : []));

/** @param {Uint8Array} bytes */
const text = (bytes) => new TextDecoder().decode(bytes);

test('integers, floats and texts are written as the protocol buffers format has them', () => {
  assert.deepEqual([...varint(0)], [0]);
  assert.deepEqual([...varint(300)], [0xac, 0x02]);
  assert.deepEqual([...varint(-1)], [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
  assert.deepEqual([...integerField(1, 150)], [0x08, 0x96, 0x01]);
  assert.deepEqual([...integerField(20, 7)], [0xa0, 0x01, 7]);
  assert.deepEqual([...stringField(2, 'testing')], [0x12, 7, ...new TextEncoder().encode('testing')]);
  assert.deepEqual([...floatField(2, 1)], [0x15, 0, 0, 0x80, 0x3f]);
  assert.deepEqual([...rawInt64(-2)], [254, 255, 255, 255, 255, 255, 255, 255]);
  assert.deepEqual([...message(integerField(1, 1), message(), integerField(1, 2))], [8, 1, 8, 2]);
});

test('an Attention model names its operator, attributes, inputs with their sizes, and operator sets', () => {
  const model = attentionModel(shape({ option: 'causal' }), 23);
  const [graph] = all(model, 7);
  const [node] = all(graph, 1);
  assert.deepEqual(all(node, 1).map(text), ['query', 'key', 'value']);
  assert.deepEqual(all(node, 4).map(text), ['Attention']);
  const attributes = all(node, 5).map((one) => ({
    name: text(all(one, 1)[0]),
    float: all(one, 2)[0],
    int: all(one, 3)[0],
  }));
  assert.deepEqual(attributes, [
    { name: 'is_causal', float: undefined, int: 1n },
    { name: 'scale', float: Math.fround(1 / Math.sqrt(8)), int: undefined },
  ]);
  const sizes = all(graph, 11).map((info) =>
    all(all(all(all(info, 2)[0], 1)[0], 2)[0], 1).map((dim) => Number(all(dim, 1)[0])),
  );
  assert.deepEqual(sizes, [
    [2, 4, 37, 8],
    [2, 2, 37, 8],
    [2, 2, 37, 8],
  ]);
  const sets = all(model, 8).map((set) => [text(all(set, 1)[0]), Number(all(set, 2)[0])]);
  assert.deepEqual(sets, [
    ['', 23],
    ['com.microsoft', 1],
  ]);
});

test('a decode step gives GroupQueryAttention a past, and whole sequences none', () => {
  const inputs = (/** @type {Case} */ c) =>
    all(all(groupQueryAttentionModel(c), 7)[0], 11).map((info) => text(all(info, 1)[0]));
  assert.deepEqual(inputs(shape({ seqlenQ: 1 })).slice(3, 5), ['past_key', 'past_value']);
  assert.deepEqual(inputs(shape()), ['query', 'key', 'value', 'seqlens_k', 'total_sequence_length']);
});

test('a composed model adds a mask exactly when causal', () => {
  const operators = (/** @type {Case} */ c) => all(all(composedModel(c), 7)[0], 1).map((node) => text(all(node, 4)[0]));
  const plain = ['Transpose', 'MatMul', 'Mul', 'Softmax', 'MatMul'];
  assert.deepEqual(operators(shape({ numKvHeads: 4 })), plain);
  assert.deepEqual(operators(shape({ numKvHeads: 4, option: 'causal' })), plain.toSpliced(3, 0, 'Add'));
});
