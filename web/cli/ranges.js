// Lists of rows, keys and heads as people write them, and sizes of maps.

import { UsageError } from './usage-error.js';

/** @typedef {(length: number) => number[]} Chooser the chosen ones of `length`, in the order given */

/**
 * Numbers and ranges separated by commas: 3,5 or 0:16 or 10: or ::2 (start:stop:step, the stop not included). Below 0 counts from the
 * end. Ranges end where there is nothing more; numbers that do not exist are left for the call to refuse.
 * @param {string} text
 * @param {string} flag
 * @returns {Chooser}
 */
export function parseRanges(text, flag) {
  const parts = text.split(',').map((part) => parseRange(part.trim(), text, flag));
  return (length) => parts.flatMap((part) => part(length));
}

/**
 * @param {string} part
 * @param {string} text
 * @param {string} flag
 * @returns {Chooser}
 */
function parseRange(part, text, flag) {
  if (/^-?\d+$/.test(part)) {
    const index = Number(part);
    return (length) => [index < 0 && index >= -length ? length + index : index];
  }
  const range = /^(-?\d+)?:(-?\d+)?(?::(\d+))?$/.exec(part);
  const step = Number(range?.[3] ?? 1);
  if (!range || step === 0) {
    throw new UsageError(`${flag} must be numbers and ranges like 3,5 or 0:16 or 0:512:8, got '${text}'`);
  }
  return (length) => {
    /** @param {string | undefined} bound @param {number} otherwise */
    const place = (bound, otherwise) => {
      const x = bound === undefined ? otherwise : Number(bound);
      return Math.min(length, Math.max(0, x < 0 ? length + x : x));
    };
    const chosen = [];
    for (let i = place(range[1], 0); i < place(range[2], length); i += step) chosen.push(i);
    return chosen;
  };
}

/**
 * @param {string} text "N" or "ROWSxCOLUMNS"
 * @param {string} flag
 * @returns {{ rows: number, columns: number }}
 */
export function parsePool(text, flag) {
  const sizes = /^(\d+)(?:x(\d+))?$/.exec(text);
  const rows = Number(sizes?.[1]);
  const columns = Number(sizes?.[2] ?? sizes?.[1]);
  if (rows >= 1 && columns >= 1 && Number.isSafeInteger(rows) && Number.isSafeInteger(columns))
    return { rows, columns };
  throw new UsageError(`${flag} must be a number of cells, 1 or more, like 512, or ROWSxCOLUMNS, got '${text}'`);
}
