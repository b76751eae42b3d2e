// One "sdpa-case-1" case through `sdpa/onnx`.
import assert from 'node:assert/strict';
import { readOperatorCase, toTensor, valuesOf } from './case-files.mjs';
import { assertClose, operatorBound, readLowestAsMasked } from './compare.mjs';

/** Function of `onnxOps(sdpa)` by operator, those of ONNX itself without a domain. */
const FUNCTIONS = {
  Attention: 'attention',
  LinearAttention: 'linearAttention',
  RotaryEmbedding: 'rotaryEmbedding',
  'com.microsoft.GroupQueryAttention': 'msGroupQueryAttention',
  'com.microsoft.MultiHeadAttention': 'msMultiHeadAttention',
  'com.microsoft.RotaryEmbedding': 'msRotaryEmbedding',
};

/** Outputs that hold raw scores. */
const SCORES = ['qk_matmul_output', 'qk', 'output_qk'];

/**
 * Runs the case of one file and checks every output that it lists.
 * @returns {string} its operator
 */
export function checkOperatorCase(ops, folder, file) {
  const { op, domain, inputs, attributes, outputs, tolerance } = readOperatorCase(folder, file);
  const operator = domain === '' ? op : `${domain}.${op}`;
  const run = ops[FUNCTIONS[operator]];
  assert.ok(run, `no function for ${operator}`);
  const tensors = Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [name, toTensor(tensor)]));
  const got = run(tensors, attributes);

  assert.ok(Object.keys(outputs).length > 0, 'a case expects some output');
  for (const [name, want] of Object.entries(outputs)) {
    assert.deepEqual(got[name].shape, want.shape, `${name}: shape`);
    assert.equal(got[name].dtype, want.dtype, `${name}: dtype`);
    const expected = SCORES.includes(name) ? readLowestAsMasked(want.values) : want.values;
    assertClose(name, valuesOf(got[name]), expected, operatorBound(want.tolerance ?? tolerance));
  }
  return operator;
}
