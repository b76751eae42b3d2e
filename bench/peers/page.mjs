/** A contestant in a browser page, told through a global what to do. */

/* global document */

import { Session } from './session.mjs';

const MODULES = '/bench/peers/npm/node_modules';

/** @param {string} source */
function runScript(source) {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = source;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`cannot load ${source}`));
    document.head.append(script);
  });
}

/** @type {import('./contestants.mjs').ImportLibrary} */
async function importLibrary(name) {
  switch (name) {
    case 'onnxruntime-web': {
      const ort = await import(name);
      ort.env.wasm.numThreads = 1;
      ort.env.wasm.wasmPaths = `${MODULES}/onnxruntime-web/dist/`;
      return ort;
    }
    case '@tensorflow/tfjs-backend-wasm': {
      await runScript(`${MODULES}/@tensorflow/tfjs-core/dist/tf-core.min.js`);
      await runScript(`${MODULES}/@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.min.js`);
      const { tf } = /** @type {any} */ (globalThis);
      tf.wasm.setWasmPaths(`${MODULES}/@tensorflow/tfjs-backend-wasm/dist/`);
      tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
      if (!(await tf.setBackend('wasm'))) throw new Error('the wasm backend did not start');
      await tf.ready();
      return tf;
    }
    default:
      return import(name);
  }
}

Object.assign(globalThis, { session: new Session(importLibrary) });
