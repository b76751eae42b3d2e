import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { modulesMatchLock } from '../bootstrap.mjs';
import { findChromium } from '../chromium.mjs';
import { CommandError, run, tryRun, which } from '../lib/exec.mjs';
import { withLock } from '../lib/lock.mjs';
import { countJunit } from '../lib/native.mjs';
import { countTap, runNodeTests, testFiles } from '../lib/node-tests.mjs';
import { chooseParts, exitStatus, parseOnly, runParts, SkipPart, summary } from '../lib/parts.mjs';

const scratch = mkdtempSync(join(tmpdir(), 'sdpa-commands-test-'));
after(() => rmSync(scratch, { recursive: true }));

const silent = () => {};

/**
 * @param {string} name
 * @param {import('../lib/parts.mjs').Part['run']} [action]
 * @param {string[]} [needs]
 * @returns {import('../lib/parts.mjs').Part}
 */
const part = (name, action = async () => {}, needs = []) => ({ name, title: name, after: needs, run: action });

describe('the parts of a command', () => {
  test('are chosen by name or group, with what they need, in order', () => {
    const parts = [
      part('setup'),
      part('build', undefined, ['setup']),
      part('js:simd', undefined, ['build']),
      part('js:scalar'),
      part('x'),
    ];
    const names = (/** @type {string[] | undefined} */ only) => chooseParts(parts, only).map(({ name }) => name);
    assert.deepEqual(names(undefined), ['setup', 'build', 'js:simd', 'js:scalar', 'x']);
    assert.deepEqual(names(['js']), ['setup', 'build', 'js:simd', 'js:scalar']);
    assert.deepEqual(names(['js:scalar', 'x']), ['js:scalar', 'x']);
    assert.throws(() => chooseParts(parts, ['jss']), /no part is called jss; there are setup, build, js:simd/);
  });

  test('are summed up, and the last line holds the sums alone', async () => {
    const outcomes = await runParts(
      [
        part('counted', async () => ({ passed: 5, failed: 0, skipped: 2, notes: ['skipped: a slow case (why)'] })),
        part('plain'),
        part('absent', async () => {
          throw new SkipPart('no browser');
        }),
      ],
      silent,
    );
    const lines = summary(outcomes).trimEnd().split('\n');
    assert.equal(lines.at(-1), '6 passed, 0 failed, 3 skipped');
    assert.ok(lines.some((line) => /^absent +0 +0 +1 .*no browser$/.test(line)));
    assert.ok(lines.includes('counted: skipped: a slow case (why)'));
    assert.equal(exitStatus(outcomes), 0);
  });

  test('that fail end the command with status 1, and what needs them is skipped by name', async () => {
    const ran = /** @type {string[]} */ ([]);
    const outcomes = await runParts(
      [
        part('build', () => run([process.execPath, '-e', 'process.exit(3)']).then(() => {})),
        part('js', async () => void ran.push('js'), ['build']),
        part('other', async () => void ran.push('other')),
      ],
      silent,
    );
    assert.deepEqual(ran, ['other']);
    assert.equal(exitStatus(outcomes), 1);
    assert.match(summary(outcomes), /\njs .*needs build\n/);
    assert.match(summary(outcomes), /\n1 passed, 1 failed, 1 skipped\n$/);
  });

  test('are named on the command line by --only', () => {
    assert.deepEqual(parseOnly(['--only', 'a,b', '--only=c', '--x']), { only: ['a', 'b', 'c'], rest: ['--x'] });
    assert.deepEqual(parseOnly([]), { only: undefined, rest: [] });
    assert.throws(() => parseOnly(['--only']), /--only needs/);
  });
});

describe('the cases', () => {
  test('of node --test are counted, failing and skipped ones too', async () => {
    const file = join(scratch, 'cases/one.test.mjs');
    mkdirSync(join(file, '..'));
    writeFileSync(
      file,
      "import { test } from 'node:test';\ntest('good', () => {});\ntest('later', { skip: 'too early' }, () => {});\n" +
        "test('bad', { skip: !process.env.FAIL }, () => { throw new Error('bad'); });\n",
    );
    assert.deepEqual(testFiles(join(scratch, 'cases')), [file]);
    const good = await runNodeTests({ name: 'self-test', folder: join(scratch, 'cases') });
    assert.deepEqual(good, { passed: 1, failed: 0, skipped: 2, notes: ['skipped: later (too early)', 'skipped: bad'] });
    const write = process.stderr.write;
    process.stderr.write = () => true;
    try {
      const bad = await runNodeTests({
        name: 'self-test',
        folder: join(scratch, 'cases'),
        env: { ...process.env, FAIL: '1' },
      });
      assert.equal(bad.failed, 1);
    } finally {
      process.stderr.write = write;
    }
  });

  test('must exist', async () => {
    await assert.rejects(runNodeTests({ name: 'self-test', folder: join(scratch, 'none') }), /no file \*\.test\.mjs/);
    writeFileSync(join(scratch, 'broken.test.mjs'), 'import "./nowhere.mjs";\n');
    assert.equal(countTap('').passed, 0);
  });

  test('of ctest are counted', () => {
    const xml =
      '<testsuite tests="4">\n<testcase name="A.b" classname="A.b" time="0.1" status="run"/>\n' +
      '<testcase name="A.c" classname="A.c" time="0.1" status="fail"><failure/></testcase>\n' +
      '<testcase name="A.d" classname="A.d" time="0" status="notrun"><skipped/></testcase>\n' +
      '<testcase name="A.e" classname="A.e" time="0" status="disabled"/>\n</testsuite>';
    assert.deepEqual(countJunit(xml), { passed: 1, failed: 1, skipped: 2, notes: ['skipped: A.d', 'disabled: A.e'] });
  });
});

describe('a child process', () => {
  test('that fails is an error with the command and the end of its output', async () => {
    const script = 'for (let i = 0; i < 100; i++) console.error(`line ${i}`); process.exit(7)';
    await assert.rejects(run([process.execPath, '-e', script]), (/** @type {unknown} */ error) => {
      assert.ok(error instanceof CommandError);
      assert.match(error.message, /ended with status 7/);
      assert.match(error.message, /line 99/);
      assert.doesNotMatch(error.message, /line 9\n/);
      return true;
    });
  });

  test('gets no stdin, and its log file holds all of its output', async () => {
    const log = join(scratch, 'child.log');
    const { status, stdout } = await tryRun(
      [process.execPath, '-e', 'process.stdin.on("end", () => console.log("end")).resume()'],
      { log },
    );
    assert.deepEqual([status, stdout], [0, 'end\n']);
    assert.ok(existsSync(log));
  });

  test('is looked up on PATH among files that can be run', () => {
    writeFileSync(join(scratch, 'tool'), '', { mode: 0o644 });
    assert.equal(which('tool', scratch), undefined);
    assert.equal(which('node', `:/nowhere:${join(process.execPath, '..')}`), join(process.execPath, '..', 'node'));
  });
});

test(
  'the lock lets one in at a time, and is free again when its holder is killed',
  { skip: !which('flock') && 'no flock' },
  async () => {
    const file = join(scratch, 'lock');
    let inside = 0;
    const enter = () =>
      withLock(file, silent, async () => {
        assert.equal(++inside, 1);
        await new Promise((done) => setImmediate(done));
        inside--;
      });
    await Promise.all([enter(), enter(), enter()]);

    const lock = fileURLToPath(new URL('../lib/lock.mjs', import.meta.url));
    const script = `import { withLock } from ${JSON.stringify(lock)};
    await withLock(${JSON.stringify(file)}, () => {}, () => { console.log('in'); return new Promise(() => setInterval(() => {}, 1e6)); });`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise((done) => holder.stdout.once('data', done));
    holder.kill('SIGKILL');
    await enter();
  },
);

test('node_modules is taken as it is when npm left in it what the lock file says', () => {
  /** @param {string} path @param {object} packages */
  const write = (path, packages) => writeFileSync(join(scratch, path), JSON.stringify({ packages }));
  mkdirSync(join(scratch, 'node_modules'));
  const a = { version: '1.0.0' };
  write('package-lock.json', { '': {}, 'node_modules/a': a, 'node_modules/b': { version: '2.0.0', optional: true } });
  assert.equal(modulesMatchLock(scratch), false);
  write('node_modules/.package-lock.json', { 'node_modules/a': a });
  assert.equal(modulesMatchLock(scratch), true);
  write('node_modules/.package-lock.json', { 'node_modules/a': { version: '1.0.1' } });
  assert.equal(modulesMatchLock(scratch), false);
  write('node_modules/.package-lock.json', {});
  assert.equal(modulesMatchLock(scratch), false);
});

test('a browser is taken from CHROMIUM or PATH, and a CHROMIUM that is none is refused', () => {
  writeFileSync(join(scratch, 'chromium'), '', { mode: 0o755 });
  assert.equal(findChromium({ CHROMIUM: join(scratch, 'chromium'), PATH: '' }), join(scratch, 'chromium'));
  assert.equal(findChromium({ PATH: scratch }), join(scratch, 'chromium'));
  assert.equal(findChromium({ PATH: '/nowhere' }), undefined);
  assert.throws(() => findChromium({ CHROMIUM: '/nowhere/chrome', PATH: '' }), /CHROMIUM is \/nowhere\/chrome/);
});
