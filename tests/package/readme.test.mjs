// What the README shows runs with the installed package and prints what it says, and the README knows what the package has.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { installPackage, root, run } from './install.mjs';

const readme = readFileSync(join(root, 'README.md'), 'utf8');
const blocks = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
const commands = [...readme.matchAll(/^ {4}npx sdpa (.*)$/gm)].map(([, args]) => args);

/** Everything in the README that is set as code, without the benches' tables. */
const shown = [
  ...blocks,
  ...commands,
  ...[...readme.replace(/<!-- bench:.*?<!-- \/bench:/gs, '').matchAll(/`[^`\n]+`/g)].map(([span]) => span),
].join('\n');

/** @type {ReturnType<typeof installPackage>} */
let installed;
before(() => {
  installed = installPackage();
});
after(() => installed?.remove());

/** @param {string} source @returns {string} what it prints */
function script(source) {
  writeFileSync(join(installed.folder, 'readme.mjs'), source);
  return run(process.execPath, ['readme.mjs'], installed.folder);
}

/** What a block's comments say its lines print. @param {string} code */
const promised = (code) => [...code.matchAll(/^ *console\.log\(.*\); \/\/ (.*)$/gm)].map(([, text]) => text);

test('there are blocks and commands, each block prints something and says what', () => {
  assert.ok(blocks.length >= 7 && commands.length >= 3, `${blocks.length} blocks, ${commands.length} commands`);
  for (const code of blocks) {
    assert.ok(promised(code).length > 0, code);
    assert.equal(code.split('console.log').length - 1, promised(code).length, code);
  }
});

blocks.forEach((code, i) => {
  test(`block ${i + 1} (${code.trim().split('\n')[0]}) prints what it says`, () => {
    const mark = '--- the block itself ---';
    const first = i === 0 ? '' : `${blocks[0]}\n`;
    const printed = script(`${first}console.log('${mark}');\n${code}`).split(`${mark}\n`)[1];
    const lines = printed.trimEnd().split('\n');
    const wanted = promised(code);
    assert.equal(lines.length, wanted.length, printed);
    wanted.forEach((text, n) => {
      // What differs between machines is an example: only its shape is compared.
      const example = text.startsWith('e.g. ');
      const plain = (/** @type {string} */ line) => (example ? line.replace(/^(e\.g\. )?\w+/, '') : line);
      assert.equal(plain(lines[n]), plain(text));
    });
  });
});

test('the commands run', () => {
  script(`
    import { writeFileSync } from 'node:fs';
    import { writeNpy, writeSafetensors } from 'sdpa/io';
    const tensor = (phase) => ({ data: Float32Array.from({ length: 2 * 512 * 8 }, (_, i) => Math.sin(i + phase)), shape: [1, 2, 512, 8], dtype: 'float32' });
    const [query, key, value] = [1, 2, 3].map(tensor);
    writeFileSync('q.npy', writeNpy(query));
    writeFileSync('k.npy', writeNpy(key));
    writeFileSync('v.npy', writeNpy(value));
    writeFileSync('tensors.safetensors', writeSafetensors({ query, key, value }));`);
  for (const args of commands) run(join(installed.folder, 'node_modules/.bin/sdpa'), args.split(' '), installed.folder);
});

/** @param {string} what @param {string[]} names */
function allShown(what, names) {
  assert.ok(names.length > 0, what);
  const missing = names.filter((name) => !new RegExp(`(?<!\\w)${name}(?!\\w)`).test(shown));
  assert.deepEqual(missing, [], `the README does not name these ${what}`);
}

test('the README names every method, option, maker of masks and operator', () => {
  const names = JSON.parse(
    script(`
      import { load, masks } from 'sdpa';
      import { onnxOps } from 'sdpa/onnx';
      import { torchFunctional } from 'sdpa/torch';
      import { jaxNN } from 'sdpa/jax';
      const sdpa = await load();
      const methods = (object) => Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== 'constructor');
      // An unknown option's error lists those that there are.
      const options = (call) => {
        try { call({ noSuchOption: 1 }); } catch (error) { return error.message.split('the options are ')[1].split(', '); }
      };
      const x = { data: new Float32Array(8), shape: [2, 4] };
      const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 1, headDim: 4 });
      const sharded = sdpa.createShardedKVCache({ batch: 1, numKvHeads: 1, headDim: 4 });
      const F = torchFunctional(sdpa);
      const nn = jaxNN(sdpa);
      console.log(JSON.stringify({
        'methods of Sdpa': methods(sdpa),
        'methods of KVCache': methods(cache).filter((name) => name !== 'disposed'),
        'methods of ShardedKVCache': methods(sharded).filter((name) => name !== 'disposed'),
        'makers of masks': Object.keys(masks),
        'functions of other names': [onnxOps(sdpa), F, nn].flatMap(Object.keys),
        'options of attention': options((o) => sdpa.attention(x, x, x, o)),
        'options of attentionWeights': options((o) => sdpa.attentionWeights(x, x, o)),
        'options of createKVCache': options((o) => sdpa.createKVCache(o)),
        'options of append': options((o) => cache.append(x, x, o)),
        'options of rope': options((o) => sdpa.rope(x, o)),
        'options of sinusoidal': options((o) => sdpa.sinusoidal(2, 4, o)),
        'options of linearAttention': options((o) => sdpa.linearAttention(x, x, x, o)),
        'options of gatedLinearAttention': options((o) => sdpa.gatedLinearAttention(x, x, x, o)),
        'options of ssd': options((o) => sdpa.ssd(x, x, [1], x, x, o)),
        'options of bigbird': options((o) => masks.bigbird(64, o)),
        'options of neighborhood': options((o) => masks.neighborhood(64, o)),
        'options of windowAttention2d': options((o) => sdpa.windowAttention2d(x, x, x, o)),
        'options of longformer': options((o) => masks.longformer(64, o)),
        'options of swin': options((o) => masks.swin(o)),
        'options of PyTorch': options((o) => F.scaledDotProductAttention(x, x, x, o)),
        'options of JAX': options((o) => nn.dotProductAttention(x, x, x, o)),
      }));`),
  );
  for (const [what, list] of Object.entries(names)) allShown(what, list);

  const [, section] = /^## Options$(.*?)^## /ms.exec(readme) ?? [];
  // The first column of its table.
  const listed = [...section.matchAll(/^\| (.*?) \|/gm)].map(([, cell]) => cell).join();
  const missing = names['options of attention'].filter((/** @type {string} */ name) => !listed.includes(`\`${name}`));
  assert.deepEqual(missing, [], 'not in the table of options');
});
