// The API reference and the pages of guides: TypeDoc warns of nothing, and everything that can be imported is there with its text.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { writeDocs } from '../../scripts/docs.mjs';
import { root } from './install.mjs';

/** TypeDoc's kind of what another entry has, too. */
const reference = 4194304;

/** @type {{ pages: string, json: string }} */
let docs;
/** @type {any} */
let project;
/** @type {Map<number, any>} */
const byId = new Map();

before(async () => {
  docs = await writeDocs({ log: () => {} });
  project = JSON.parse(readFileSync(docs.json, 'utf8'));
  /** @param {any} node */
  const collect = (node) => {
    byId.set(node.id, node);
    node.children?.forEach(collect);
  };
  collect(project);
});

/** @param {string} entry @returns {any[]} what it exports */
const membersOf = (entry) => project.children.find((/** @type {any} */ module) => module.name === entry).children;

/** What is shown of it. @param {any} node @returns {string} */
function textOf(node) {
  if (node.kind === reference) return textOf(byId.get(node.target));
  const comments = [node.comment, ...(node.signatures ?? []), node.getSignature].map((it) => it?.comment ?? it);
  return comments
    .flatMap((comment) => [...(comment?.summary ?? []), ...(comment?.blockTags ?? []).flatMap((tag) => tag.content)])
    .map((part) => part.text)
    .join('');
}

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const entries = Object.entries(manifest.exports).filter(([, value]) => typeof value === 'object');

for (const [path, { import: target }] of entries) {
  const entry = join('sdpa', path);
  test(`everything that ${entry} exports is there, with its text`, async () => {
    const members = membersOf(entry);
    const values = Object.keys(await import(entry));
    const declared = readFileSync(join(root, target.types), 'utf8');
    const types = [...declared.matchAll(/^export type (?:\{ (\w+) \}|(\w+)\b)/gm)].map(
      ([, taken, own]) => taken ?? own,
    );
    assert.ok(values.length > 0 && types.length > 0);
    for (const name of new Set([...values, ...types])) {
      const found = members.filter((/** @type {any} */ member) => member.name === name);
      assert.equal(found.length, 1, `${name} of ${entry}`);
      assert.ok(textOf(found[0]).length > 3, `${name} of ${entry} has no text`);
    }
  });
}

test('every maker of masks has its text', async () => {
  const { masks } = await import('sdpa');
  const texts = Object.fromEntries(
    membersOf('masks').map((/** @type {any} */ member) => [member.name, textOf(member)]),
  );
  for (const name of Object.keys(masks)) assert.ok(texts[name]?.length > 20, `${name}: ${texts[name]}`);
});

test('every method of an instance, a cache and a layer has its text', async () => {
  const { load } = await import('sdpa');
  const sdpa = await load();
  const cache = { batch: 1, numKvHeads: 1, headDim: 4 };
  const objects = {
    Sdpa: sdpa,
    SdpaTensor: sdpa.tensor([1]),
    KVCache: sdpa.createKVCache(cache),
    ShardedKVCache: sdpa.createShardedKVCache(cache),
  };
  for (const [name, object] of Object.entries(objects)) {
    const { children } = membersOf('sdpa').find((/** @type {any} */ member) => member.name === name);
    const names = Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((key) => key !== 'constructor');
    assert.ok(names.length > 2, name);
    for (const key of names) {
      const found = children.find((/** @type {any} */ child) => child.name === key);
      assert.ok(found && textOf(found).length > 3, `${name}.${key}`);
    }
  }
  sdpa.dispose();
});

test('every option of attention() has its text', async () => {
  const { load } = await import('sdpa');
  const sdpa = await load();
  const x = { data: new Float32Array(8), shape: [2, 4] };
  let message = '';
  try {
    sdpa.attention(x, x, x, /** @type {any} */ ({ noSuchOption: 1 }));
  } catch (error) {
    ({ message } = /** @type {Error} */ (error));
  }
  sdpa.dispose();
  const names = message.split('the options are ')[1].split(', ');
  const { children } = membersOf('sdpa').find((/** @type {any} */ member) => member.name === 'AttentionOptions');
  const texts = Object.fromEntries(children.map((/** @type {any} */ child) => [child.name, textOf(child)]));
  for (const name of names) assert.ok(texts[name]?.length > 5, `${name}: ${texts[name]}`);
});

test('every guide is a page', () => {
  const first = readFileSync(join(docs.pages, 'index.html'), 'utf8');
  const guides = readdirSync(join(root, 'web/docs')).filter((name) => name.endsWith('.md') && name !== 'README.md');
  for (const name of guides) {
    const [, title] = /^# (.*)$/m.exec(readFileSync(join(root, 'web/docs', name), 'utf8')) ?? [];
    assert.ok(title, `${name} has no title`);
    const page = join(docs.pages, 'documents', `${title.replaceAll(' ', '_')}.html`);
    assert.ok(existsSync(page) && readFileSync(page, 'utf8').includes(`>${title}<`), `${name} is no page`);
    assert.ok(first.includes(`documents/${title.replaceAll(' ', '_')}.html`), `the first page has no link to ${name}`);
  }
});
