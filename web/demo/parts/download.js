// Files that the page hands out: pictures and tables.

/**
 * @param {Blob} blob
 * @param {string} name of the file
 */
export function download(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * A canvas as a PNG file.
 * @param {HTMLCanvasElement} canvas
 * @param {string} name of the file, without its ending
 * @returns {Promise<void>}
 */
export function downloadPng(canvas, name) {
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => {
      if (!blob) return reject(new Error('the browser made no picture of this canvas'));
      download(blob, `${name}.png`);
      resolve();
    }),
  );
}

/**
 * Numbers as CSV, each with the digits that give the same float32 back.
 * @param {readonly string[]} header
 * @param {Iterable<readonly (string | number)[]>} lines
 */
export function csvText(header, lines) {
  let text = `${header.map(field).join(',')}\n`;
  for (const line of lines) text += `${line.map(field).join(',')}\n`;
  return text;
}

/** @param {string | number} cell */
function field(cell) {
  if (typeof cell === 'number') return Number.isInteger(cell) ? String(cell) : String(Number(cell.toPrecision(9)));
  return /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/**
 * @param {string} text
 * @param {string} name of the file, without its ending
 */
export const downloadCsv = (text, name) => download(new Blob([text], { type: 'text/csv' }), `${name}.csv`);
