// Every case file of ONNX's and onnxruntime's own tests of the operators, and the block of a real model.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { onnxOps } from 'sdpa/onnx';
import { loadVariant } from '../helpers/sdpa.mjs';
import { listCaseFiles } from './case-files.mjs';
import { checkOperatorCase } from './operator.mjs';

/** Files of each folder, by operator. */
const FOLDERS = {
  onnx: { Attention: 43, LinearAttention: 7, RotaryEmbedding: 4 },
  ort: {
    Attention: 47,
    RotaryEmbedding: 8,
    'com.microsoft.GroupQueryAttention': 21,
    'com.microsoft.MultiHeadAttention': 33,
    'com.microsoft.RotaryEmbedding': 12,
  },
  real: { Attention: 1 },
};

/** @type {Awaited<ReturnType<typeof loadVariant>>} */
let sdpa;
before(async () => {
  sdpa = await loadVariant();
});
after(() => sdpa.dispose());

for (const [folder, counts] of Object.entries(FOLDERS)) {
  describe(`cases/${folder}`, () => {
    /** @type {Record<string, number>} */
    const ran = {};
    for (const file of listCaseFiles(folder)) {
      test(`${file.replace(/\.json.*/, '')} gives the expected outputs`, () => {
        const operator = checkOperatorCase(onnxOps(sdpa), folder, file);
        ran[operator] = (ran[operator] ?? 0) + 1;
      });
    }
    test(`all files of cases/${folder} were run: ${JSON.stringify(counts)}`, () => {
      assert.deepEqual(ran, counts);
    });
  });
}
