// Turns, rounds, and what is made of them; with contestants that only play their part.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseProcessStat } from '../load.mjs';
import { oneLine } from '../one-line.mjs';
import { readOptions } from '../options.mjs';
import { timeShape } from '../rounds.mjs';
import { isWrong, summarise } from '../summary.mjs';
import { shape } from './small-shape.mjs';

test('turns that others disturbed are thrown away where three quiet ones remain, and marked where not', () => {
  /** @param {number} ms @param {number} [otherLoad] */
  const turn = (ms, otherLoad = 0) => ({ ms: [ms - 1, ms, ms + 1], otherLoad });
  assert.deepEqual(summarise([turn(10), turn(30), turn(20), turn(90, 0.5)]), {
    ms: 20,
    msMin: 9,
    turns: 3,
    calls: 9,
    discarded: 1,
    noisy: false,
  });
  const { ms, turns, noisy, discarded } = summarise([turn(10), turn(20), turn(90, 0.5)]);
  assert.deepEqual({ ms, turns, noisy, discarded }, { ms: 20, turns: 3, noisy: true, discarded: 0 });
  assert.equal(summarise([turn(10)]).noisy, false);
  assert.equal(summarise([{ ms: [1], otherLoad: undefined }]).noisy, false, 'where it cannot be told');
});

test('an error above the tolerance or not a number is wrong', () => {
  assert.deepEqual([1e-7, 1e-4, NaN, Infinity, undefined].map(isWrong), [false, true, true, true, false]);
});

test('processor time of a process is read behind a name with brackets and spaces', () => {
  const stat = '42 (a) b (c) S 7 1 1 0 -1 4194304 1 2 3 4 50 6 10 20 20 0 1 0 99';
  assert.deepEqual(parseProcessStat(stat, false), { parent: 7, ms: 560 });
  assert.deepEqual(parseProcessStat(stat, true), { parent: 7, ms: 860 });
});

test('a failure is told in one line and without folders', () => {
  const said = oneLine('\nnode failed: /build/x/core/math.cc:12 too large\nat somewhere');
  assert.equal(said, 'node failed: math.cc:12 too large');
  assert.equal(oneLine('cannot load file:///home/x/a.mjs now'), 'cannot load a.mjs now');
  assert.equal(oneLine('1/2 and/or'), '1/2 and/or');
  assert.ok(oneLine('x'.repeat(999)).length <= 160);
});

/**
 * An engine whose contestants do what `script` says.
 * @param {Record<string, { error?: number, fails?: string, firstMs?: number }>} script
 */
function actors(script) {
  /** @type {string[]} */
  const log = [];
  /** @type {any} */
  const engine = {
    async player(/** @type {string} */ id) {
      return {
        pid: undefined,
        async prepare() {
          log.push(`prepare ${id}`);
          const { fails, error = 0, firstMs = 1 } = script[id];
          if (fails) throw new Error(fails);
          return { error, firstMs };
        },
        async turn() {
          log.push(`turn ${id}`);
          return [2];
        },
        close: async () => void log.push(`close ${id}`),
      };
    },
  };
  const contestants = Object.keys(script).map((id) => ({
    id,
    library: /** @type {any} */ (id),
    way: '',
    prepare: /** @type {any} */ (null),
  }));
  return { engine, contestants, log };
}

const pace = { rounds: 3, retries: 0, patienceMs: 0, turnMs: 0 };

test('turns go round the contestants; who fails or is wrong is not timed; all are closed', async () => {
  const { engine, contestants, log } = actors({
    a: {},
    b: { fails: 'no memory' },
    c: { error: 0.5 },
    d: {},
    e: { error: NaN },
  });
  const { entries } = await timeShape(engine, contestants, shape(), pace);
  assert.deepEqual(
    log.filter((line) => line.startsWith('turn')),
    ['turn a', 'turn d', 'turn d', 'turn a', 'turn d', 'turn a'],
  );
  assert.equal(log.filter((line) => line.startsWith('close')).length, 5);
  const byId = Object.fromEntries(entries.map((entry) => [entry.contestant, entry]));
  assert.equal(byId.a.ms, 2);
  assert.equal(byId.a.turns, 3);
  assert.equal(byId.b.failed, 'no memory');
  assert.equal(byId.c.wrong, 0.5);
  assert.equal(byId.c.ms, undefined);
  assert.equal(byId.e.wrong, null);
});

test('at huge shapes one contestant is open at a time, and slow ones have one turn', async () => {
  const { engine, contestants, log } = actors({ a: {}, slow: { firstMs: 1e4 } });
  await timeShape(engine, contestants, shape({ seqlenQ: 20000, seqlenKv: 20000 }), pace);
  const once = (/** @type {string} */ id) => [`prepare ${id}`, `turn ${id}`, `close ${id}`];
  assert.deepEqual(log, [...once('a'), ...once('slow'), ...once('a'), ...once('a')]);
});

test('options that are not understood name themselves and the values', () => {
  assert.throws(() => readOptions(['--shapes', 'bert128,bert9'], 'r'), /--shapes takes bert128, .*got bert9/);
  assert.throws(() => readOptions(['--rounds', '0'], 'r'), /--rounds takes a whole number from 1 on, got 0/);
  assert.throws(() => readOptions(['--peers', '('], 'r'), /--peers takes a regular expression/);
  assert.throws(() => readOptions(['--speed'], 'r'), /--speed/);
});

test('a part of the comparison is not kept among the complete runs, and the command is told without its folder', () => {
  assert.equal(readOptions([], 'results').out, 'results');
  assert.equal(readOptions(['--shapes', 'swin'], 'results').out, undefined);
  const { out, command } = readOptions(['--peers', 'sdpa|mha', '--out', '/some/where'], 'results');
  assert.equal(out, '/some/where');
  assert.equal(command, "npm run bench:peers -- --peers 'sdpa|mha'");
});
