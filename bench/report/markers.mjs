/**
 * Replaces what stands between `<!-- NAME -->` and `<!-- /NAME -->`.
 * @param {string} text
 * @param {string} name
 * @param {string} content Markdown
 * @returns {string}
 * @throws {Error} unless each of the two comments is there once, in that order
 */
export function replaceBlock(text, name, content) {
  const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  for (const marker of [open, close]) {
    const count = text.split(marker).length - 1;
    if (count !== 1) throw new Error(`${marker} must stand there once, and stands there ${count} times`);
  }
  const start = text.indexOf(open) + open.length;
  const end = text.indexOf(close);
  if (end < start) throw new Error(`${close} stands before ${open}`);
  return `${text.slice(0, start)}\n\n${content.trim()}\n\n${text.slice(end)}`;
}
