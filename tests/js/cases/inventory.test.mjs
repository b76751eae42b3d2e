// Nothing lies in tests/cases that no test takes.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { listCaseFiles } from './case-files.mjs';

const ROOT = new URL('../../cases/', import.meta.url);
const FOLDERS = ['bugs', 'onnx', 'ort', 'real'];

test('each folder of cases is one that a test runs, and each file in it is read', () => {
  const entries = readdirSync(ROOT, { withFileTypes: true });
  const folders = entries
    .filter((entry) => entry.isDirectory() && entry.name !== 'licences')
    .map((entry) => entry.name);
  assert.deepEqual(folders.sort(), FOLDERS);
  assert.deepEqual(
    entries.filter((entry) => !entry.isDirectory()).map((entry) => entry.name),
    ['README.md'],
  );
  for (const folder of FOLDERS) {
    assert.deepEqual(readdirSync(new URL(`${folder}/`, ROOT)).sort(), listCaseFiles(folder));
  }
});
