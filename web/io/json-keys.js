// JSON.parse keeps the last of two equal keys and says nothing; a file that means different things to different readers must be refused.

/**
 * @param {string} text valid JSON
 * @returns {string | undefined} the first key that its object has twice
 */
export function findDuplicateKey(text) {
  /** @type {(Set<string> | undefined)[]} one per open bracket: the keys so far for an object, undefined for an array */
  const open = [];
  const token = /"(?:[^"\\]|\\.)*"|[{}[\]:]/gs;
  let string = '';
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [found] = match;
    if (found === '{') open.push(new Set());
    else if (found === '[') open.push(undefined);
    else if (found === '}' || found === ']') open.pop();
    else if (found !== ':') string = found;
    else {
      const key = JSON.parse(string);
      const keys = /** @type {Set<string>} */ (open.at(-1));
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return undefined;
}
