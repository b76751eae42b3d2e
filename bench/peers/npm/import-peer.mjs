/** Loads the peers in Node. It lies in their package's folder, because names of packages are looked up from a file's own. */

import { createRequire } from 'node:module';

/**
 * @param {Exclude<import('../contestants.mjs').Library, 'sdpa'>} name
 * @returns {Promise<any>} the library, on one thread
 */
export async function importPeer(name) {
  const require = createRequire(import.meta.url);
  switch (name) {
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
