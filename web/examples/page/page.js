// A call that leaves the page responsive, says how far it is, and can be stopped.

import { load } from 'sdpa';

/** @param {string} id @returns {any} */
const element = (id) => document.getElementById(id);
const [start, stop, progress, status] = ['start', 'stop', 'progress', 'status'].map(element);

const shape = [1, 2, 16384, 64];
const random = () => ({
  data: Float32Array.from({ length: 2 * 16384 * 64 }, () => Math.random() - 0.5),
  shape,
});

const sdpa = await load();
status.textContent = `Ready, with the ${sdpa.variant} build.`;
start.disabled = false;

/** @type {AbortController} */
let controller;
stop.addEventListener('click', () => controller.abort());
start.addEventListener('click', async () => {
  controller = new AbortController();
  start.disabled = true;
  stop.disabled = false;
  status.textContent = 'Computing …';
  try {
    const { out } = await sdpa.attentionAsync(random(), random(), random(), {
      causal: true,
      signal: controller.signal,
      onProgress: ({ done, total }) => (progress.value = done / total),
    });
    status.textContent = `Done: ${out.shape.join(' × ')}.`;
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    status.textContent = 'Stopped.';
  }
  start.disabled = false;
  stop.disabled = true;
});
