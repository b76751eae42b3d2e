// Elements, made in one line each.

/** @typedef {Record<string, string | number | boolean | undefined | ((event: any) => void)>} Attributes */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes] a function is a listener of the event `onNAME`; false and undefined leave the attribute out
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/**
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElement}
 */
export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/**
 * @param {Element} element
 * @param {Attributes} attributes
 */
function setAttributes(element, attributes) {
  for (const [name, setting] of Object.entries(attributes)) {
    if (typeof setting === 'function') element.addEventListener(name.slice(2), setting);
    else if (setting !== undefined && setting !== false)
      element.setAttribute(name, setting === true ? '' : String(setting));
  }
}

/**
 * The element with an id, which is there.
 * @template {HTMLElement} [E=HTMLElement]
 * @param {string} id
 * @returns {E}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return /** @type {E} */ (found);
}

let made = 0;

/** An id that no other element has. @param {string} stem */
export const freshId = (stem) => `${stem}-${++made}`;

/** The visitor asked for less movement. */
export const reducedMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

const darkQuery = '(prefers-color-scheme: dark)';

export const isDark = () => matchMedia(darkQuery).matches;

/**
 * Calls back when light becomes dark or the other way round: canvases are drawn anew.
 * @param {() => void} action
 */
export function onTheme(action) {
  matchMedia(darkQuery).addEventListener('change', action);
}

/**
 * A colour of style/base.css as the theme has it now.
 * @param {string} name without the two dashes
 */
export const themeColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
