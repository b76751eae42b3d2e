// JSON.parse keeps the last of two equal keys and says nothing; a file that means different things to different readers must be refused.

/**
 * @param {string} text valid JSON
 * @returns {string | undefined} the first key that its object has twice
 */
export function findDuplicateKey(text) {
  /** @type {(Set<string> | undefined)[]} one per open bracket: the keys so far for an object, undefined for an array */
  const open = [];
  let string = '';
  // No expression for a whole string: its matcher keeps a place for every character, and there may be a hundred million.
  const token = /["{}[\]:]/g;
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [found] = match;
    if (found === '{') open.push(new Set());
    else if (found === '[') open.push(undefined);
    else if (found === '}' || found === ']') open.pop();
    else if (found === '"') {
      token.lastIndex = endOfString(text, match.index);
      string = text.slice(match.index, token.lastIndex);
    } else {
      const key = JSON.parse(string);
      const keys = /** @type {Set<string>} */ (open.at(-1));
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return undefined;
}

/**
 * @param {string} text valid JSON
 * @param {number} start of a string, its quote
 * @returns {number} where the text goes on behind it
 */
function endOfString(text, start) {
  let end = text.indexOf('"', start + 1);
  for (;;) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return end + 1;
    end = text.indexOf('"', end + 1);
  }
}
