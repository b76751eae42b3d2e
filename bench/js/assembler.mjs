/** Writes small WebAssembly modules: just what the loops of ceiling.mjs need of the binary format. */

/** @typedef {'i32' | 'f32' | 'v128'} ValueType */

/** @typedef {number[]} Code instructions as bytes */

/**
 * @typedef {object} Func
 * @property {string} name under which it is exported
 * @property {ValueType[]} params
 * @property {ValueType} result
 * @property {ValueType[]} locals numbered on from the parameters
 * @property {Code} body
 */

/** @type {Record<ValueType, number>} */
const TYPES = { i32: 0x7f, f32: 0x7d, v128: 0x7b };

/** @param {number} value LEB128 @returns {Code} */
export function unsigned(value) {
  const low = value % 128;
  return value < 128 ? [value] : [low | 128, ...unsigned((value - low) / 128)];
}

/** @param {number} value LEB128, 32-bit @returns {Code} */
export function signed(value) {
  const low = value & 127;
  const rest = value >> 7;
  // The last byte's bit 6 is the sign of everything above it.
  return rest === -(low >> 6) ? [low] : [low | 128, ...signed(rest)];
}

/** @param {number[]} opcode @returns {(...operands: Code[]) => Code} operands first, then the instruction */
const instruction =
  (...opcode) =>
  (...operands) => [...operands.flat(), ...opcode];

/** @param {number} code SIMD opcode @returns {Code} */
const simd = (code) => [0xfd, ...unsigned(code)];

/**
 * A load at `address + offset`; the alignment is a hint that engines ignore.
 * @param {Code} opcode
 * @returns {(address: Code, offset: number) => Code}
 */
const load = (opcode) => (address, offset) => [...address, ...opcode, 0, ...unsigned(offset)];

/** Instructions, named as in the text format. */
export const op = {
  local: {
    /** @param {number} index @returns {Code} */
    get: (index) => [0x20, ...unsigned(index)],
    /** @param {number} index @param {Code} value @returns {Code} */
    set: (index, value) => [...value, 0x21, ...unsigned(index)],
    /** @param {number} index @param {Code} value @returns {Code} */
    tee: (index, value) => [...value, 0x22, ...unsigned(index)],
  },
  i32: {
    /** @param {number} value @returns {Code} */
    const: (value) => [0x41, ...signed(value)],
    add: instruction(0x6a),
    sub: instruction(0x6b),
  },
  f32: {
    /** @param {number} value @returns {Code} */
    const: (value) => [0x43, ...new Uint8Array(Float32Array.of(value).buffer)],
    load: load([0x2a]),
    add: instruction(0x92),
    mul: instruction(0x94),
  },
  v128: { load: load(simd(0)), load32Splat: load(simd(9)) },
  f32x4: {
    splat: instruction(...simd(0x13)),
    /** @param {number} lane @param {Code} vector @returns {Code} */
    extractLane: (lane, vector) => [...vector, ...simd(0x1f), lane],
    add: instruction(...simd(0xe4)),
    mul: instruction(...simd(0xe6)),
    relaxedMadd: instruction(...simd(0x105)),
  },
  /**
   * Runs the body, again and again while the condition on its end is not 0.
   * @param {Code} body
   * @param {Code} condition
   * @returns {Code}
   */
  loopWhile: (body, condition) => [0x03, 0x40, ...body, ...condition, 0x0d, 0, 0x0b],
};

/** @param {Code[]} items @returns {Code} their number, then the items */
const vector = (items) => [...unsigned(items.length), ...items.flat()];

/** @param {Code} content @returns {Code} its length, then the content */
const sized = (content) => [...unsigned(content.length), ...content];

/** @param {number} id @param {Code} content @returns {Code} */
const section = (id, content) => [id, ...sized(content)];

/** @param {string} text @returns {Code} */
const nameOf = (text) => sized([...new TextEncoder().encode(text)]);

/**
 * @param {object} module
 * @param {number} module.pages of 64 KiB; the memory is exported as `memory`
 * @param {Func[]} module.functions
 * @returns {Uint8Array<ArrayBuffer>} the binary
 */
export function assemble({ pages, functions }) {
  const types = functions.map(({ params, result }) => [
    0x60,
    ...vector(params.map((type) => [TYPES[type]])),
    1,
    TYPES[result],
  ]);
  const bodies = functions.map(({ locals, body }) =>
    sized([...vector(locals.map((type) => [1, TYPES[type]])), ...body, 0x0b]),
  );
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, vector(types)),
    ...section(3, vector(functions.map((_, i) => unsigned(i)))),
    ...section(5, vector([[0, ...unsigned(pages)]])),
    ...section(
      7,
      vector([[...nameOf('memory'), 2, 0], ...functions.map(({ name }, i) => [...nameOf(name), 0, ...unsigned(i)])]),
    ),
    ...section(10, vector(bodies)),
  ]);
}
