/** Times the contestants of an engine at one shape, in turns that go round all of them. */

import { caseName, flops } from '../js/cases.mjs';
import { NOISY, startMeter, untilQuiet } from './load.mjs';
import { isHuge } from './shapes.mjs';
import { gflops, isWrong, summarise } from './summary.mjs';

/** @typedef {import('../js/cases.mjs').Case} Case */
/** @typedef {import('./contestants.mjs').Contestant} Contestant */
/** @typedef {import('./node-engine.mjs').Engine} Engine */
/** @typedef {import('./node-engine.mjs').Player} Player */

/**
 * @typedef {object} Pace
 * @property {number} rounds
 * @property {number} retries of a turn that other processes disturbed
 * @property {number} patienceMs how long a turn waits for a quiet moment
 * @property {number} turnMs least length of a turn
 */

const WARM_UP_MS = 400;

/** Where the first call takes longer, a few turns have to do. */
const SLOW_MS = 4000;
const SLOW_ROUNDS = 2;
const HUGE_ROUNDS = 3;

/**
 * @typedef {object} Seat a contestant with what it has done so far
 * @property {Contestant} contestant
 * @property {Player} [player]
 * @property {import('./node-engine.mjs').Prepared} [prepared]
 * @property {string} [failed]
 * @property {import('./summary.mjs').Turn[]} turns
 */

/**
 * @param {Engine} engine
 * @param {readonly Contestant[]} contestants
 * @param {Case} c
 * @param {Pace} pace
 * @returns {Promise<import('./summary.mjs').ShapeResult>}
 */
export async function timeShape(engine, contestants, c, pace) {
  /** @type {Seat[]} */
  const seats = contestants
    .filter(({ offers }) => offers?.(c) ?? true)
    .map((contestant) => ({ contestant, turns: [] }));
  const huge = isHuge(c);
  try {
    if (!huge) for (const seat of seats) await prepare(engine, seat, c, WARM_UP_MS);
    for (let round = 0; round < (huge ? Math.min(pace.rounds, HUGE_ROUNDS) : pace.rounds); round++) {
      // Each round begins with another one.
      for (let i = 0; i < seats.length; i++) {
        const seat = seats[(i + round) % seats.length];
        if (isOut(seat, round, huge)) continue;
        // Huge ones are alone on the machine, and set up anew in each round.
        if (huge) await prepare(engine, seat, c, 0);
        if (!isOut(seat, round, huge)) await turn(seat, pace);
        if (huge) await leave(seat);
      }
    }
  } finally {
    for (const seat of seats) await leave(seat);
  }
  return { name: caseName(c), nickname: c.nickname, flops: flops(c), entries: seats.map((seat) => entry(seat, c)) };
}

/** @param {Seat} seat @param {number} round @param {boolean} huge */
function isOut({ failed, prepared }, round, huge) {
  if (failed !== undefined) return true;
  if (!prepared) return !huge;
  if (isWrong(prepared.error)) return true;
  return prepared.firstMs > SLOW_MS && round >= (huge ? 1 : SLOW_ROUNDS);
}

/** @param {Engine} engine @param {Seat} seat @param {Case} c @param {number} warmUpMs */
async function prepare(engine, seat, c, warmUpMs) {
  try {
    seat.player = await engine.player(seat.contestant.id, c.nickname);
    seat.prepared = await seat.player.prepare(warmUpMs);
  } catch (error) {
    await fail(seat, error);
  }
}

/** @param {Seat} seat @param {unknown} error */
async function fail(seat, error) {
  seat.failed = error instanceof Error ? error.message : String(error);
  await leave(seat);
}

/** @param {Seat} seat */
async function leave(seat) {
  const { player } = seat;
  seat.player = undefined;
  await player?.close();
}

/**
 * One turn that counts, and those before it that other processes disturbed.
 * @param {Seat} seat
 * @param {Pace} pace
 */
async function turn(seat, { retries, patienceMs, turnMs }) {
  const { player, prepared, turns } = seat;
  if (!player || !prepared) return;
  const slow = prepared.firstMs > SLOW_MS;
  try {
    for (let attempt = 0; attempt <= (slow ? 0 : retries); attempt++) {
      await untilQuiet(patienceMs);
      const otherLoad = startMeter(player.pid);
      const ms = await player.turn(turnMs);
      const share = otherLoad();
      turns.push({ ms, otherLoad: share });
      if (share === undefined || share < NOISY) return;
    }
  } catch (error) {
    await fail(seat, error);
  }
}

/** @param {Seat} seat @param {Case} c @returns {import('./summary.mjs').Entry} */
function entry({ contestant, prepared, failed, turns }, c) {
  const { id, library, way } = contestant;
  const who = { contestant: id, library, way };
  if (failed !== undefined) return { ...who, failed };
  if (!prepared) throw new Error(`${id} was never prepared`);
  const { error, grown } = prepared;
  if (error !== undefined && isWrong(error)) return { ...who, wrong: Number.isFinite(error) ? error : null };
  const numbers = summarise(turns);
  return {
    ...who,
    ...(error !== undefined && { error }),
    ...numbers,
    gflops: gflops(c, numbers.ms),
    ...(grown !== undefined && { grown }),
  };
}
