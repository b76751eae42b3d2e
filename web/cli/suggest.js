/**
 * The name that was most likely meant.
 * @param {string} given
 * @param {readonly string[]} names
 * @returns {string} "; did you mean …?" or nothing where no name is near
 */
export function suggest(given, names) {
  const allowed = Math.max(1, Math.floor(given.length / 3));
  let best = '';
  let least = allowed + 1;
  for (const name of names) {
    const distance = given.length >= 3 && name.startsWith(given) ? 1 : editDistance(given, name);
    if (distance < least) [best, least] = [name, distance];
  }
  return best ? `; did you mean '${best}'?` : '';
}

/**
 * Letters to insert, delete, replace or swap with the next one (optimal string alignment).
 * @param {string} a
 * @param {string} b
 * @returns {number}
 */
function editDistance(a, b) {
  /** @type {number[]} */
  let twoBack = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j], twoBack[j - 2] + 1);
    }
    [twoBack, previous] = [previous, row];
  }
  return previous[b.length];
}
