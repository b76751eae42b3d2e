// The tables of known faults: each row names a test, and each test that is named exists.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from './install.mjs';

/** Rows of the tables in a Markdown file, by their cells. @param {string} file */
const rowsOf = (file) =>
  readFileSync(join(root, file), 'utf8')
    .split('\n')
    .filter((line) => /^\| [A-Z]\d+ /.test(line))
    .map((line) =>
      line
        .slice(2, -2)
        .split(' | ')
        .map((cell) => cell.trim()),
    );

/** The tests that a cell names: `file` “title”. @param {string} cell */
const testsIn = (cell) =>
  [...cell.matchAll(/`(tests\/[^`]+)` [“"]([^”"]+)[”"]/g)].map(([, file, title]) => ({ file, title }));

/** @param {{ file: string, title: string }} named @returns {boolean} */
function exists({ file, title }) {
  if (file === 'tests/js/cases/bugs') {
    // Its titles are the names of files, which it counts.
    return existsSync(join(root, `${file}.test.mjs`)) && existsSync(join(root, 'tests/cases/bugs', `${title}.json`));
  }
  const native = join(root, `${file}_test.cpp`);
  if (existsSync(native)) {
    const [suite, name] = title.split('.');
    return new RegExp(`^TEST(_P|_F)?\\(${suite}, ${name}\\)`, 'm').test(readFileSync(native, 'utf8'));
  }
  const path = join(root, `${file}.test.mjs`);
  if (!existsSync(path)) return false;
  // A title as it stands in the source, or the parts of it that the table gives.
  const titles = [...readFileSync(path, 'utf8').matchAll(/(?:^|\W)\w*[tT]est\(\s*(['"`])(.*?)\1/gs)].map(
    ([, , text]) => text,
  );
  const parts = title.split(' … ');
  return titles.some((text) => parts.every((part) => text.includes(part)));
}

test('each fault of numbers, time and views has a row with its answer and a test that exists', () => {
  const rows = rowsOf('web/docs/faults.md');
  const numbers = rows.map(([id]) => id);
  assert.deepEqual(
    numbers,
    [...Array(19).keys()]
      .map((i) => `N${i + 1}`)
      .concat(
        [...Array(7).keys()].map((i) => `T${i + 1}`),
        [...Array(9).keys()].map((i) => `V${i + 1}`),
      ),
  );
  for (const [id, fault, answer, cell] of rows) {
    assert.ok(fault.length > 20 && answer.length > 10, id);
    const named = testsIn(cell);
    assert.ok(named.length > 0 && named.length === cell.split('; `').length, `${id}: ${cell}`);
    for (const one of named) assert.ok(exists(one), `${id}: ${one.file} has no test “${one.title}”`);
  }
});

test('the tests of the JavaScript that the table of hosts names exist', () => {
  const rows = rowsOf('tests/hosts/README.md');
  assert.ok(rows.length >= 20);
  const named = rows.flatMap(([, cell]) => testsIn(cell));
  assert.ok(named.length >= 10);
  for (const one of named) assert.ok(exists(one), `${one.file} has no test “${one.title}”`);
});
