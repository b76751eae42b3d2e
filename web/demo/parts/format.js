// Numbers as the page writes them.

/**
 * @param {number} number
 * @returns {string} 32 768, with a narrow space that does not break
 */
export const whole = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, '\u202f');

/**
 * Three digits, never more.
 * @param {number} number
 * @returns {string} 4.29, 33.6, 134
 */
export const short = (number) => (number >= 99.95 ? whole(number) : number.toFixed(number >= 9.995 ? 1 : 2));

/**
 * Decimal units: 1 MB is 10^6 bytes.
 * @param {number} bytes
 * @returns {[amount: string, unit: string]}
 */
export function size(bytes) {
  if (bytes < 999.5) return [whole(bytes), 'bytes'];
  if (bytes < 999.5e3) return [short(bytes / 1e3), 'KB'];
  if (bytes < 999.5e6) return [short(bytes / 1e6), 'MB'];
  return [short(bytes / 1e9), 'GB'];
}

/** @param {number} bytes */
export const sizeText = (bytes) => size(bytes).join('\u00a0');

/**
 * @param {number} milliseconds
 * @returns {[amount: string, unit: string]}
 */
export function duration(milliseconds) {
  return milliseconds < 999.5 ? [short(milliseconds), 'ms'] : [short(milliseconds / 1000), 's'];
}

/** @param {number} milliseconds */
export const durationText = (milliseconds) => duration(milliseconds).join('\u00a0');

/**
 * @param {number} error
 * @returns {string} 3.1e-7 written as 3.1 × 10⁻⁷
 */
export function power(error) {
  if (error === 0) return '0';
  if (!Number.isFinite(error)) return String(error);
  const [digits, exponent] = error.toExponential(1).split('e');
  const raised = [...String(Number(exponent))].map((sign) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(sign)] ?? '⁻').join('');
  return `${digits}\u00a0×\u00a010${raised}`;
}

/**
 * So many digits behind the point, with a minus sign where a program writes a hyphen, and none at a zero.
 * @param {number} number
 * @param {number} digits
 */
export const fixed = (number, digits) => signed(number.toFixed(digits)).replace(/^−([0.]+)$/, '$1');

/** @param {string} text */
const signed = (text) => text.replace('-', '−');

/**
 * Three digits of any number.
 * @param {number} value
 * @returns {string} 0.123, −3, 1.5 × 10⁻⁷, 10⁶, 1 024
 */
export function shortNumber(value) {
  const magnitude = Math.abs(value);
  if (value === 0) return '0';
  if (magnitude >= 1000 && magnitude < 1e6) return `${value < 0 ? '−' : ''}${whole(magnitude)}`;
  if (magnitude >= 0.001 && magnitude < 1e6) return signed(String(Number(value.toPrecision(3))));
  return signed(power(value)).replace('1.0\u00a0×\u00a0', '');
}

/**
 * What fits into a cell of a map.
 * @param {number} value
 * @returns {string} 0.12, 3, 17
 */
export const cellText = (value) =>
  Number.isInteger(value) ? signed(String(value)) : fixed(value, Math.abs(value) < 10 ? 2 : 0);
