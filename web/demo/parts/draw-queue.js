// Drawings wait for a frame, and only one is made in each: many together would be one long task.

/** @type {(() => void)[]} */
const waiting = [];
let isRunning = false;

/** @param {() => void} draw called once, at one of the next frames */
export function queueDrawing(draw) {
  waiting.push(draw);
  if (!isRunning) requestAnimationFrame(next);
  isRunning = true;
}

function next() {
  const draw = waiting.shift();
  isRunning = waiting.length > 0;
  if (isRunning) requestAnimationFrame(next);
  draw?.();
}
