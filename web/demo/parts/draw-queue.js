// Drawings wait for a frame, and only one is made in each: many together would be one long task.

/** @type {Set<() => void>} */
const waiting = new Set();

/** @param {() => void} draw called at one of the next frames, once however often it was asked for until then */
export function queueDrawing(draw) {
  if (waiting.size === 0) requestAnimationFrame(next);
  waiting.add(draw);
}

function next() {
  const [draw] = waiting;
  waiting.delete(draw);
  if (waiting.size > 0) requestAnimationFrame(next);
  draw();
}
