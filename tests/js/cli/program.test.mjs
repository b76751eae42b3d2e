import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { VARIANT } from '../helpers/sdpa.mjs';
import { attention, failsInOneLine, makeFolder, nodeFlags, program, succeeds } from './program.mjs';

const { tensor, normal } = randomSource(5);
const files = ['--query', 'q.npy', '--key', 'k.npy', '--value', 'v.npy'];

/** A folder with a small problem: 5 queries, 6 keys, head size 4. */
function makeProblem() {
  const folder = makeFolder();
  folder.npy('q.npy', tensor(5, 4));
  folder.npy('k.npy', tensor(6, 4));
  folder.npy('v.npy', tensor(6, 4));
  return folder;
}

test('--version, --help and the help of each command go to the standard output', async () => {
  const { run } = makeFolder();
  const { version } = JSON.parse(succeeds(await run(['info', '--json'])).stdout.toString());
  assert.equal(succeeds(await run(['--version'])).stdout.toString(), `${version}\n`);
  for (const [args, expected] of /** @type {[string[], RegExp][]} */ ([
    [['--help'], /commands\n {2}attention.*\n {2}weights.*\n {2}info/],
    [['attention', '--help'], /--query-offset N/],
    [['attention', '--query', 'missing.npy', '--help'], /--kv-lengths LIST/],
    [['weights', '--help'], /--top-k K/],
    [['info', '--help'], /--json/],
  ])) {
    const { stdout, stderr } = succeeds(await run(args));
    assert.match(stdout.toString(), expected);
    assert.equal(stderr, '');
    for (const line of stdout.toString().split('\n')) assert.ok(line.length <= 120, line);
  }
});

test('info tells version, features, the build in use, sizes, memory and threads, for people and as JSON', async () => {
  const { run } = makeFolder();
  const info = JSON.parse(succeeds(await run(['info', '--json', '--variant', VARIANT])).stdout.toString());
  assert.equal(info.variant, VARIANT);
  assert.equal(info.engine.node, process.versions.node);
  assert.equal(info.features.webAssembly, true);
  assert.deepEqual(info.builds.map((/** @type {any} */ build) => build.name).sort(), ['relaxed', 'scalar', 'simd']);
  for (const { bytes, gzipped } of info.builds) assert.ok(gzipped > 1000 && gzipped < bytes);
  assert.ok(info.memory.wasm >= info.memory.held && info.memory.held > 0);
  assert.equal(info.threads, 0);
  const text = succeeds(await run(['info', '--variant', VARIANT])).stdout.toString();
  assert.match(text, new RegExp(`^build +${VARIANT}$`, 'm'));
  assert.match(text, /^memory .*kB held/m);
});

describe('bad input is exit code 2, one line, and no file', { concurrency: 2 }, () => {
  const folder = makeProblem();
  folder.npy('k5.npy', tensor(6, 5));
  folder.npy('int.npy', { data: Int32Array.of(1, 2, 3, 4), shape: [1, 4] });
  folder.npy('huge.npy', { data: Float64Array.of(1, 1e300, 3, 4), shape: [1, 4] });
  folder.npy('mask.npy', { data: new Uint8Array(30).fill(1), shape: [5, 6], dtype: 'bool' });
  folder.npy('mask4.npy', { data: new Uint8Array(4).fill(1), shape: [4], dtype: 'bool' });
  folder.npz('all.npz', { query: tensor(5, 4), key: tensor(6, 4), value: tensor(6, 4), '\u001b[2Jx\n': tensor(1) });
  folder.write('cut.npy', folder.read('q.npy').slice(0, 150));
  folder.write('text.npy', new TextEncoder().encode('hello'));
  folder.write('empty.npy', new Uint8Array(0));
  const before = folder.list();
  const out = ['--out', 'o.npy'];

  for (const [args, message] of /** @type {[string[], RegExp][]} */ ([
    [[], /no command/],
    [['atention'], /unknown command 'atention'; did you mean 'attention'\?/],
    [['frobnicate'], /unknown command 'frobnicate'/],
    [['constructor'], /unknown command 'constructor'/],
    [['--versoin'], /unknown option '--versoin'; did you mean '--version'\?/],
    [['bench'], /'sdpa bench' is not in this version/],
    [['info', '--jsn'], /unknown option '--jsn'; did you mean '--json'\?/],
    [['info', '--variant', 'avx'], /--variant must be one of auto, relaxed, simd, scalar, got 'avx'/],
    [['attention', ...files, ...out, '--causl'], /unknown option '--causl'; did you mean '--causal'\?/],
    [['attention', ...files, ...out, '-causal'], /unknown option '-causal'; did you mean '--causal'\?/],
    [['attention', ...files, ...out, '--zebra=1'], /unknown option '--zebra'\n/],
    [['attention', ...files, ...out, '--causal=false'], /--causal takes no value, got 'false'/],
    [['attention', ...files, ...out, 'extra'], /unexpected argument 'extra'/],
    [['attention', ...files, ...out, '--scale', '1', '--scale', '2'], /--scale is given twice/],
    [['attention', ...files, ...out, '--scale'], /--scale needs a value/],
    [['attention', ...files, ...out, '--scale', '--causal'], /--scale needs a value .*got '--causal'/],
    [['attention', ...files, ...out, '--scale', 'x'], /--scale must be a finite number, got 'x'/],
    [['attention', ...files, ...out, '--scale', 'Infinity'], /--scale must be a finite number, got 'Infinity'/],
    [['attention', ...files, ...out, '--softcap', '-1'], /softcap must be 0 .*-1/],
    [['attention', ...files, ...out, '--window', '3'], /--window must be two counts.*'3'/],
    [['attention', ...files, ...out, '--window=-1,2'], /--window must be two counts.*'-1,2'/],
    [['attention', ...files, ...out, '--align', 'lower'], /--align must be one of .*did you mean 'lower-right'/],
    [['attention', ...files, ...out, '--query-offset', '1.5'], /--query-offset must be a whole number.*'1.5'/],
    [
      ['attention', ...files, ...out, '--causal', '--query-offset', '1,2'],
      /--query-offset has 2 numbers but the batch is 1/,
    ],
    [['attention', ...files, ...out, '--kv-lengths', '7'], /--kv-lengths\[0\] is 7 .*key length 6/],
    [['attention', ...files, ...out, '--kv-lengths', '1,2'], /--kv-lengths has 2 numbers but the batch is 1/],
    [['attention', ...files, ...out, '--kv-lengths', '1,,2'], /--kv-lengths 1,,2: must be whole numbers/],
    [['attention', ...files, ...out, '--query-lengths', 'q.npy'], /--query-lengths q.npy holds float32/],
    [['attention', ...files, ...out, '--rows-per-slice', '0'], /--rows-per-slice must be a whole number, 1 or more/],
    [
      ['attention', ...files, ...out, '--causal'],
      /--causal must know.*\[5, 4\].*\[6, 4\].*--align lower-right.*--query-offset/,
    ],
    [['attention', ...files, ...out, '--window', '1,1'], /--window must know where query 0 stands/],
    [['attention', ...files], /--out FILE is missing/],
    [['attention', '--key', 'k.npy', '--value', 'v.npy', ...out], /--query FILE is missing/],
    [['attention', ...files, '--out', 'o.txt'], /--out o.txt: the name must end in .npy, .npz or .safetensors/],
    [['attention', ...files, '--out', 'no/o.npy'], /--out no\/o.npy: no such file or directory/],
    [['attention', ...files, '--out', 'q.npy/o.npy'], /--out q.npy\/o.npy: .*not a directory/],
    [['attention', ...files, '--out', 'q.npy'], /--out q.npy is also an input/],
    [['attention', ...files, ...out, '--lse', 'o.npy'], /--out and --lse both name o.npy/],
    [['attention', ...files, ...out, '--scores', 'weights'], /--scores needs --scores-out FILE/],
    [['attention', ...files, ...out, '--scores', 'final'], /--scores must be one of/],
    [['attention', ...files, ...out, '--scores-out', 's.npy'], /--scores-out needs --scores/],
    [['attention', ...files.with(1, 'missing.npy'), ...out], /--query missing.npy: no such file or directory/],
    [['attention', ...files.with(1, '.'), ...out], /--query \. is a directory/],
    [['attention', ...files.with(1, 'cut.npy'), ...out], /--query cut.npy: .*cut short/],
    [['attention', ...files.with(1, 'text.npy'), ...out], /--query text.npy is not a .npy, .npz or .safetensors file/],
    [
      ['attention', ...files.with(1, 'empty.npy'), ...out],
      /--query empty.npy is not a .npy, .npz or .safetensors file/,
    ],
    [['attention', ...files.with(3, 'k5.npy'), ...out], /key head size is 5 but query head size is 4/],
    [['attention', ...files.with(1, 'int.npy'), ...out], /query data must be a Float32Array.*Int32Array/],
    [['attention', ...files.with(1, 'huge.npy'), ...out], /query holds 1e\+300, which float32 cannot/],
    [['attention', ...files, ...out, '--mask', 'q.npy'], /mask must be boolean.*bias/],
    [['attention', ...files, ...out, '--bias', 'mask.npy'], /bias data must be .*mask/],
    [['attention', ...files, ...out, '--mask', 'mask4.npy'], /mask shape \[4\] does not broadcast to \[1, 1, 5, 6\]/],
    [['attention', '--input', 'q.npy', ...out], /--input q.npy is a .npy file with one array/],
    [['attention', '--input', 'all.npz', ...out, '--name', 'query'], /--name must be ROLE=NAME/],
    [['attention', '--input', 'all.npz', ...out, '--name', 'querry=x'], /no role 'querry'.*did you mean 'query'/],
    [['attention', '--input', 'all.npz', ...out, '--name', 'query=quary'], /no tensor 'quary'; did you mean 'query'/],
    [
      ['attention', '--input', 'all.npz', ...out, '--name', 'query=nothing'],
      /it has query, key, value, \\x1b\[2Jx\\x0a/,
    ],
    [
      ['attention', '--input', 'all.npz', ...out, '--name', 'key=key', '--name', 'key=k'],
      /--name key=… is given twice/,
    ],
    [['attention', ...files, ...out, '--name', 'mask=m'], /--name mask=m needs a file/],
    [['attention', ...files, ...out, '--name', 'query=q'], /--query q.npy, whose array has no name/],
    [['attention', ...files, ...out, '--mask', 'all.npz'], /--mask all.npz has no tensor 'mask'/],
  ])) {
    test(`sdpa ${args.join(' ')}`, async () => {
      failsInOneLine(await folder.run(args), 2, message);
    });
  }

  test('and none of them left a file', () => {
    assert.deepEqual(folder.list(), before);
  });
});

test('a failure of the machine is exit code 1, one line, and no file, also not the ones written before it', async () => {
  const folder = makeProblem();
  // a device that is always full
  symlinkSync('/dev/full', folder.path('full.npy'));
  const before = folder.list();
  const flags = [...attention, ...files, '--lse', 'full.npy', '--out', 'o.npy'];
  failsInOneLine(await folder.run(flags), 1, /no space left/i);
  assert.deepEqual(folder.list(), before);
});

test('out of memory is exit code 1 and one line', async () => {
  const folder = makeFolder();
  for (const name of ['q', 'k', 'v'])
    folder.npy(`${name}.npy`, { data: new Float32Array(2 ** 22), shape: [2 ** 16, 64] });
  const outcome = await folder.run([...attention, ...files, '--out', 'o.npy'], { node: ['--wasm-max-mem-pages=400'] });
  failsInOneLine(outcome, 1, /needs \d+ bytes/);
  assert.deepEqual(folder.list(), ['k.npy', 'q.npy', 'v.npy']);
});

test('an existing result is replaced, a link keeps pointing at it', async () => {
  const folder = makeProblem();
  folder.write('real.npy', new Uint8Array(3));
  symlinkSync('real.npy', folder.path('link.npy'));
  succeeds(await folder.run([...attention, ...files, '--out', 'link.npy']));
  assert.deepEqual(folder.readNpy('real.npy').shape, [5, 4]);
  assert.deepEqual(folder.list(), ['k.npy', 'link.npy', 'q.npy', 'real.npy', 'v.npy']);
});

test('in a pipe there is no progress bar, on a terminal there is one', async () => {
  const folder = makeProblem();
  const args = [...attention, ...files, '--rows-per-slice', '2', '--out', 'o.npy'];
  const { stderr } = succeeds(await folder.run(args));
  assert.match(stderr, /^out [^\n]*\n$/);
  const script = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)';
  const terminal = spawnSync('python3', ['-c', script, process.execPath, ...nodeFlags, program, ...args], {
    cwd: folder.folder,
    encoding: 'utf8',
    input: '',
  });
  assert.equal(terminal.status, 0, terminal.stderr);
  assert.match(terminal.stdout, /attention \[-+\] 0% \| 0 of 5 query rows/);
  assert.match(terminal.stdout, /attention \[=+\] 100% \| 5 of 5 query rows/);
  assert.match(terminal.stdout, /out \[5, 4\] to o\.npy/);
});

test('a reader that leaves early ends the program without a trace of it', async () => {
  const folder = makeProblem();
  for (const [args, code] of /** @type {[string[], number][]} */ ([
    [['--help'], 0],
    [['info'], 0],
    [[...attention, ...files, '--out', '-'], 1],
  ])) {
    const child = folder.start(args);
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
    child.stdout.destroy();
    const [exitCode] = await once(child, 'close');
    assert.equal(stderr, '', args.join(' '));
    assert.equal(exitCode, code, args.join(' '));
  }
});

test('Ctrl-C in the middle of the computation ends it at once and leaves no file', async () => {
  const folder = makeFolder();
  const [length, size] = [40_000, 16];
  const data = Float64Array.from({ length: length * size }, normal);
  // float64, because its note tells that reading is over; then many seconds of work follow, in long slices
  folder.npy('q.npy', { data, shape: [length, size] });
  folder.npy('k.npy', { data, shape: [length, size] });
  folder.npy('v.npy', { data, shape: [length, size] });
  const child = folder.start([...attention, ...files, '--out', 'o.npy', '--rows-per-slice', '10000']);
  child.stderr.once('data', () => child.kill('SIGINT'));
  const [, signal] = await once(child, 'close');
  assert.equal(signal, 'SIGINT');
  assert.deepEqual(folder.list(), ['k.npy', 'q.npy', 'v.npy']);
});

test('inputs may come through a pipe', async () => {
  const folder = makeProblem();
  const command = `cat q.npy | "$0" "$@" --query /dev/stdin`;
  const args = [process.execPath, ...nodeFlags, program, ...attention, ...files.slice(2), '--out', 'o.npy'];
  const child = spawn('sh', ['-c', command, ...args], { cwd: folder.folder });
  const [code] = await once(child, 'close');
  assert.equal(code, 0);
  assert.deepEqual(folder.readNpy('o.npy').shape, [5, 4]);
});
