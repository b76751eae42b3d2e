// Errors with a stable code. A wrong type is a TypeError, a wrong value or shape a RangeError, and what goes wrong while
// loading a plain Error; each carries the brand that makes it an AttentionError, also across copies of this package
// (ESM beside CommonJS) and across realms.

/**
 * Stable codes, `error.code`:
 * - `type`: an argument has a wrong type
 * - `shape`: shapes do not fit one another, or the data its shape
 * - `option`: an option has a value outside its range
 * - `unknown-option`: no such option
 * - `align-required`: query and key lengths differ and nothing says where query 0 stands
 * - `disposed`: the tensor or the instance was disposed of
 * - `out-of-memory`: not enough memory (`needed` and `allowed` say how much, in bytes)
 * - `unsupported`: specified, but not in this version, not in this engine, or in a part that the slim entry was loaded without
 * - `load-failed`: the module could not be loaded (`cause`, `url`, `status`, `firstBytes`)
 * - `version-mismatch`: the wasm binary belongs to another version of the package
 * - `capacity`: a cache is full
 * @typedef {'type' | 'shape' | 'option' | 'unknown-option' | 'align-required' | 'disposed' | 'out-of-memory' | 'unsupported' | 'load-failed' | 'version-mismatch' | 'capacity'} ErrorCode
 */

/**
 * What some codes add to the error.
 * @typedef {object} ErrorDetails
 * @property {unknown} [cause] the error underneath
 * @property {string} [url] load-failed: the address that was asked for
 * @property {number} [status] load-failed: the HTTP status that came back
 * @property {Uint8Array} [firstBytes] load-failed: the first bytes of what came back
 * @property {number} [needed] out-of-memory: bytes asked for
 * @property {number} [allowed] out-of-memory: bytes that may be had
 */

const brand = Symbol.for('sdpa.AttentionError');

/**
 * The brand of every error that this package throws: `error instanceof AttentionError` and `AttentionError.is(error)`
 * say the same. The errors themselves are TypeErrors, RangeErrors and (while loading) Errors.
 */
export class AttentionError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} message
   * @param {ErrorDetails} [details]
   */
  constructor(code, message, details) {
    super(message);
    /** @type {ErrorCode} */
    this.code = code;
    /** @type {number | undefined} */
    this.needed = undefined;
    /** @type {number | undefined} */
    this.allowed = undefined;
    /** @type {string | undefined} */
    this.url = undefined;
    /** @type {number | undefined} */
    this.status = undefined;
    /** @type {Uint8Array | undefined} */
    this.firstBytes = undefined;
    mix(this, code, details);
  }

  /**
   * Whether an error is one of this package's.
   * @param {unknown} error
   * @returns {error is AttentionError}
   */
  static is(error) {
    return typeof error === 'object' && error !== null && /** @type {any} */ (error)[brand] === true;
  }

  /**
   * The same for `instanceof`.
   * @override
   * @param {unknown} error
   */
  static [Symbol.hasInstance](error) {
    return AttentionError.is(error);
  }
}

/**
 * @template {Error} E
 * @param {E} error
 * @param {ErrorCode} code
 * @param {ErrorDetails} [details]
 * @returns {E & AttentionError}
 */
function mix(error, code, details) {
  Object.defineProperty(error, brand, { value: true });
  if (details) {
    const { cause, ...rest } = details;
    // Not enumerable, as the cause that an Error's own constructor sets.
    if (cause !== undefined)
      Object.defineProperty(error, 'cause', { value: cause, writable: true, configurable: true });
    Object.assign(error, rest);
  }
  return /** @type {E & AttentionError} */ (Object.assign(error, { code }));
}

/**
 * A wrong type.
 * @param {ErrorCode} code
 * @param {string} message
 * @param {ErrorDetails} [details]
 * @returns {TypeError & AttentionError}
 */
export function typeError(code, message, details) {
  return mix(new TypeError(message), code, details);
}

/**
 * A wrong value or shape.
 * @param {ErrorCode} code
 * @param {string} message
 * @param {ErrorDetails} [details]
 * @returns {RangeError & AttentionError}
 */
export function rangeError(code, message, details) {
  return mix(new RangeError(message), code, details);
}

/**
 * Something outside the call's arguments: a file, a network, an engine.
 * @param {ErrorCode} code
 * @param {string} message
 * @param {ErrorDetails} [details]
 * @returns {Error & AttentionError}
 */
export function loadError(code, message, details) {
  return mix(new Error(message), code, details);
}

/**
 * @param {number} needed bytes
 * @param {number} allowed bytes
 * @param {string} what
 * @param {unknown} [cause]
 * @returns {RangeError & AttentionError}
 */
export function outOfMemory(needed, allowed, what, cause) {
  const rest = needed <= allowed ? ', but not in one piece' : '';
  const message = `${what} needs ${needed} bytes and ${Math.max(0, allowed)} bytes are allowed${rest}`;
  return rangeError('out-of-memory', message, { needed, allowed, cause });
}

/**
 * Something is used that has been disposed of.
 * @param {string} what
 * @param {boolean} withInstance whether it was its instance that has been
 * @returns {RangeError & AttentionError}
 */
export function disposedError(what, withInstance) {
  return rangeError('disposed', `${withInstance ? `the sdpa instance of ${what}` : what} has been disposed of`);
}

/**
 * A value as an error message shows it: short, and never failing.
 * @param {unknown} value
 * @returns {string}
 */
export function show(value) {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value);
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) {
    const shown = value.slice(0, 8).map((item) => (typeof item === 'object' && item !== null ? '…' : show(item)));
    return `[${shown.join(', ')}${value.length > 8 ? ', …' : ''}]`;
  }
  return `a ${Object.prototype.toString.call(value).slice(8, -1)}`;
}
