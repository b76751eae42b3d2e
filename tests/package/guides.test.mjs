// The guides of web/docs: their code runs with the installed package and prints what it says, types fit, links lead somewhere, and no
// guide has a speed that only a new measurement could vouch for.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { checkTypes, installPackage, root, run } from './install.mjs';

const folder = join(root, 'web/docs');
const guides = readdirSync(folder)
  .filter((name) => name.endsWith('.md'))
  .map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));

/** Code of a guide. @param {string} text @param {string} language as it stands behind the fence */
const blocksOf = (text, language) =>
  [...text.matchAll(/^```(.*)\n([^]*?)^```$/gm)].filter(([, info]) => info === language).map(([, , code]) => code);

/** Guides with code that runs: one program each, block after block. */
const programs = guides
  .map(({ name, text }) => ({ name: name.replace('.md', ''), source: blocksOf(text, 'js').join('\n') }))
  .filter(({ source }) => source !== '');

/** @type {ReturnType<typeof installPackage>} */
let installed;
before(() => {
  installed = installPackage();
});
after(() => installed?.remove());

test('there is a guide for each subject, and the index names them all', () => {
  const index = guides.find(({ name }) => name === 'README.md')?.text ?? '';
  for (const { name } of guides) if (name !== 'README.md') assert.ok(index.includes(`(${name})`), name);
  assert.ok(programs.length >= 10, `${programs.length} guides with code`);
});

for (const { name, source } of programs) {
  test(`the code of ${name} runs and prints what it says`, () => {
    const promised = [...source.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, text]) => text);
    assert.ok(promised.length >= 2, `${promised.length} lines are printed`);
    assert.equal(source.split('console.log').length - 1, promised.length, 'each print says what it prints');
    const file = `guide-${name}.mjs`;
    writeFileSync(join(installed.folder, file), source);
    const printed = run(process.execPath, [file], installed.folder).trimEnd().split('\n');
    assert.deepEqual(printed, promised);
  });
}

test('the code of the guides, that for pages too, fits the types', () => {
  const place = join(installed.folder, 'guides');
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'address.d.ts'), "declare module '*?url' { const url: string; export default url; }\n");
  let pages = 0;
  for (const { name, text } of guides) {
    const inNode = blocksOf(text, 'js');
    if (inNode.length) writeFileSync(join(place, `${name}.mjs`), inNode.join('\n'));
    for (const code of blocksOf(text, 'js browser')) {
      // One without imports goes on from the guide's first block.
      const imports = /^import /m.test(code) ? '' : (inNode[0].match(/^import .* from 'sdpa';$/gm)?.join('\n') ?? '');
      writeFileSync(join(place, `page-${++pages}.mjs`), `${imports}\n${code}`);
    }
  }
  assert.ok(pages >= 2);
  // As in a plain JavaScript project: helpers have no annotations, and an error is not narrowed before its code is read.
  checkTypes(place, { strict: false, include: ['*.mjs', '*.d.ts'] });
});

test('links between guides lead somewhere', () => {
  let links = 0;
  for (const { name, text } of guides) {
    for (const [, target] of text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^https?:/.test(target)) continue;
      links++;
      assert.ok(existsSync(join(dirname(join(folder, name)), target)), `${name}: ${target}`);
    }
  }
  assert.ok(links > 10);
});

test('no guide states a speed', () => {
  for (const { name, text } of guides) {
    const found = /\d[\d.]*\s*(ms|µs|seconds|GFLOP|GB\/s|times (faster|slower|as fast))\b/i.exec(text);
    assert.equal(found, null, `${name}: ${found}`);
  }
});
