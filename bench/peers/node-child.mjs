/** A contestant in a Node process of its own, told by message what to do. */

import { createRequire } from 'node:module';
import { allowRelaxedSimd } from '../js/relaxed.mjs';
import { isMain } from '../../scripts/lib/exec.mjs';
import { oneLine } from './one-line.mjs';
import { Session } from './session.mjs';

/** @typedef {import('./contestants.mjs').Library} Library */

/** @type {import('./contestants.mjs').ImportLibrary} */
async function importLibrary(name) {
  const require = createRequire(import.meta.url);
  switch (name) {
    case 'sdpa':
      allowRelaxedSimd();
      return import('../../dist/index.js');
    case 'onnxruntime-web': {
      const ort = await import(name);
      ort.env.wasm.numThreads = 1;
      return ort;
    }
    case '@tensorflow/tfjs-backend-wasm': {
      // Its ES modules name no file extensions, which Node refuses; the CommonJS ones work.
      const tf = require('@tensorflow/tfjs-core');
      require(name);
      tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
      if (!(await tf.setBackend('wasm'))) throw new Error('the wasm backend did not start');
      await tf.ready();
      return tf;
    }
    case 'onnxruntime-node':
      return require(name);
    default:
      return import(name);
  }
}

/** @param {unknown} error */
const messageOf = (error) => oneLine(error instanceof Error ? error.message : String(error));

if (isMain(import.meta.url)) {
  const session = new Session(importLibrary);
  process.on('message', async (/** @type {{ method: 'prepare' | 'turn', values: any[] }} */ { method, values }) => {
    try {
      const resident = process.memoryUsage.rss();
      const result = method === 'prepare' ? await session.prepare(...spread3(values)) : await session.turn(values[0]);
      // maxRSS is in KiB.
      const grown = Math.max(0, process.resourceUsage().maxRSS * 1024 - resident);
      process.send?.({ result: method === 'prepare' ? { ...result, grown } : result });
    } catch (error) {
      process.send?.({ failed: messageOf(error) });
    }
  });
  process.send?.({ result: process.versions });
}

/** @param {any[]} values @returns {[string, string, number]} */
const spread3 = ([contestant, nickname, warmUpMs]) => [contestant, nickname, warmUpMs];
