// Every case file of ONNX's and onnxruntime's own tests of Attention, and the block of a real model.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { onnxOps } from 'sdpa/onnx';
import { loadVariant } from '../helpers/sdpa.mjs';
import { listCaseFiles } from './case-files.mjs';
import { checkOperatorCase } from './operator.mjs';

const FOLDERS = { onnx: 43, ort: 47, real: 1 };

/** @type {Awaited<ReturnType<typeof loadVariant>>} */
let sdpa;
before(async () => {
  sdpa = await loadVariant();
});
after(() => sdpa.dispose());

for (const [folder, count] of Object.entries(FOLDERS)) {
  describe(`cases/${folder}`, () => {
    const ran = new Set();
    for (const file of listCaseFiles(folder)) {
      test(`${file.replace(/\.json.*/, '')} gives the expected outputs`, () => {
        ran.add(file);
        checkOperatorCase(onnxOps(sdpa), folder, file);
      });
    }
    test(`all ${count} files of cases/${folder} were run`, () => {
      assert.equal(ran.size, count);
    });
  });
}
