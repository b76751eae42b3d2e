const LONGEST = 160;

/**
 * A failure as a table's footnote: its first line, without the folders of this or any other machine.
 * @param {string} text
 */
export function oneLine(text) {
  const line =
    text
      .split('\n')
      .map((one) => one.trim())
      .find((one) => one !== '') ?? 'no message';
  const short = line
    .replaceAll(/(^|[\s'"(=])(?:file:\/\/|https?:\/\/[^\s/]+)?\/(?:[^\s/'":()]+\/)+/g, '$1')
    .replaceAll(/\s+/g, ' ');
  return short.length > LONGEST ? `${short.slice(0, LONGEST - 1)}…` : short;
}
