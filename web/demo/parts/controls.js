// A section's settings: sliders, choices and switches, kept in its part of the address.

import { freshId, make } from './dom.js';

/**
 * @typedef {{ kind: 'range', label: string, min: number, max: number, step?: number, initial: number, show?: (value: number) => string }} RangeSpec
 * @typedef {{ kind: 'choice', label: string, options: readonly (readonly [value: string, text: string])[], initial: string }} ChoiceSpec
 * @typedef {{ kind: 'switch', label: string, initial: boolean }} SwitchSpec
 * @typedef {RangeSpec | ChoiceSpec | SwitchSpec} Spec
 */

/**
 * @template {Record<string, Spec>} S
 * @typedef {{ [N in keyof S]: S[N]['kind'] extends 'range' ? number : S[N]['kind'] extends 'switch' ? boolean : string }} Values
 */

/**
 * Settings as text, from a permalink; what is missing or makes no sense is as at the start.
 * @template {Record<string, Spec>} S
 * @param {S} specs
 * @param {Readonly<Record<string, string>>} texts
 * @returns {Values<S>}
 */
export function readValues(specs, texts) {
  return /** @type {any} */ (
    Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, readValue(spec, texts[name])]))
  );
}

/**
 * @param {Spec} spec
 * @param {string | undefined} text
 */
function readValue(spec, text) {
  if (text === undefined) return spec.initial;
  if (spec.kind === 'switch') return text !== '0' && text !== 'false';
  if (spec.kind === 'choice') return spec.options.some(([value]) => value === text) ? text : spec.initial;
  const { min, max, step = 1, initial } = spec;
  const number = text.trim() === '' ? NaN : Number(text);
  if (!Number.isFinite(number)) return initial;
  const stepped = min + Math.round((Math.min(max, Math.max(min, number)) - min) / step) * step;
  // Steps of 0.1 added up are no tenths.
  return Number(Math.min(max, stepped).toPrecision(12));
}

/** @param {number | boolean | string} value */
const textOf = (value) => (typeof value === 'boolean' ? (value ? '1' : '0') : String(value));

/**
 * @template {Record<string, Spec>} S
 * @typedef {object} Controls
 * @property {HTMLFieldSetElement} element
 * @property {Values<S>} values now
 * @property {(some: Partial<Values<S>>) => void} set as if the visitor had; calls onChange
 * @property {Record<keyof S, HTMLInputElement | HTMLSelectElement>} inputs
 * @property {(name: keyof S, isOffered: boolean) => void} offer takes away what has no effect now, and brings it back
 */

/**
 * Builds the controls, fills them from the address, writes each change to it, and hears when it changes.
 * @template {Record<string, Spec>} S
 * @param {S} specs by their names in the address
 * @param {import('../scaffold/permalink.js').SectionState} state
 * @param {(values: Values<S>) => void} onChange not called at the start
 * @param {string} [legend]
 * @returns {Controls<S>}
 */
export function controls(specs, state, onChange, legend = 'Settings') {
  const element = make('fieldset', { class: 'controls' }, make('legend', { class: 'visually-hidden' }, legend));
  /** @type {any} */
  const inputs = {};
  /** @type {Record<string, (value: any) => void>} */
  const setters = {};
  /** @type {any} */
  const fields = {};
  for (const [name, spec] of Object.entries(specs)) {
    const { field, input, write } = makers[spec.kind](/** @type {any} */ (spec), freshId(`${state.name}-${name}`));
    input.dataset.name = name;
    inputs[name] = input;
    setters[name] = write;
    fields[name] = field;
    element.append(field);
  }
  const offer = (/** @type {keyof S} */ name, /** @type {boolean} */ isOffered) =>
    void (fields[name].hidden = inputs[name].disabled = !isOffered);
  const own = { element, inputs, values: readValues(specs, state.read()), set, offer };
  const write = () => {
    for (const name of Object.keys(specs)) setters[name](own.values[name]);
  };
  /** @param {Partial<Values<S>>} some */
  function set(some) {
    own.values = { ...own.values, ...some };
    write();
    save();
    onChange(own.values);
  }
  // What else the section keeps there stays.
  const save = () => {
    const texts = Object.entries(specs).map(([name]) => [name, textOf(own.values[name])]);
    state.write({ ...state.read(), ...Object.fromEntries(texts) });
  };
  write();
  element.addEventListener('input', ({ target }) => {
    const input = /** @type {HTMLInputElement} */ (target);
    const { name } = input.dataset;
    if (name === undefined) return;
    const text = input.type === 'checkbox' ? textOf(input.checked) : input.value;
    set(/** @type {any} */ ({ [name]: readValue(specs[name], text) }));
  });
  state.listen(() => {
    own.values = readValues(specs, state.read());
    write();
    onChange(own.values);
  });
  return own;
}

const makers = {
  /** @param {RangeSpec} spec @param {string} id */
  range({ label, min, max, step = 1, show = String }, id) {
    const shown = make('output', { for: id });
    const input = make('input', { id, type: 'range', min, max, step });
    const field = make('div', { class: 'field wide' }, make('label', { for: id }, `${label} `, shown), input);
    const write = (/** @type {number} */ value) => {
      input.value = String(value);
      shown.textContent = show(value);
      shown.dataset.value = String(value);
      input.setAttribute('aria-valuetext', show(value));
    };
    return { field, input, write };
  },
  /** @param {ChoiceSpec} spec @param {string} id */
  choice({ label, options }, id) {
    const input = make('select', { id }, ...options.map(([value, text]) => new Option(text, value)));
    const field = make('div', { class: 'field' }, make('label', { for: id }, label), input);
    return { field, input, write: (/** @type {string} */ value) => void (input.value = value) };
  },
  /** @param {SwitchSpec} spec @param {string} id */
  switch({ label }, id) {
    const input = make('input', { id, type: 'checkbox', role: 'switch' });
    const field = make('label', { class: 'switch', for: id }, input, make('span', {}, label));
    return { field, input, write: (/** @type {boolean} */ value) => void (input.checked = value) };
  },
};
