// What is set in a section, in the address: #SECTION?name=value&… The address names the section that was touched last.

/**
 * The state of one section, as texts by name.
 * @typedef {object} SectionState
 * @property {string} name of the section
 * @property {() => Readonly<Record<string, string>>} read
 * @property {(values: Record<string, string>) => void} write replaces the state and the address; calls no listener
 * @property {(action: () => void) => void} listen hears of states that come from the address: links, back and forward
 * @property {() => string} link the address of the page with this state
 */

/**
 * @param {string} hash with or without its #
 * @param {readonly string[]} names of the sections; settings without a name belong to the first
 * @returns {{ name: string, values: Record<string, string> | null } | null} `values`: null where there are none
 */
export function parseHash(hash, names) {
  const text = hash.replace(/^#/, '');
  const mark = text.indexOf('?');
  const name = mark < 0 ? text : text.slice(0, mark);
  if (names.includes(name)) return { name, values: mark < 0 ? null : entries(text.slice(mark + 1)) };
  return names.length > 0 && mark < 0 && text.includes('=') ? { name: names[0], values: entries(text) } : null;
}

/** @param {string} query */
const entries = (query) => Object.fromEntries(new URLSearchParams(query));

/**
 * @param {string} name
 * @param {Readonly<Record<string, string>>} values
 */
export const toHash = (name, values) =>
  Object.keys(values).length === 0 ? `#${name}` : `#${name}?${new URLSearchParams(values)}`;

export class Permalinks {
  /** @type {readonly string[]} */
  #names;
  /** @type {Map<string, Record<string, string>>} */
  #states = new Map();
  /** @type {Map<string, (() => void)[]>} */
  #listeners = new Map();
  /** @type {(name: string) => void} */
  #onVisit;

  /**
   * @param {readonly string[]} names of the sections, in their order
   * @param {(name: string) => void} onVisit a link leads to this section
   */
  constructor(names, onVisit) {
    this.#names = names;
    this.#onVisit = onVisit;
    addEventListener('hashchange', () => this.take());
  }

  /** Takes the address: the state it has, and where it leads. */
  take() {
    const found = parseHash(location.hash, this.#names);
    if (!found) return;
    const { name, values } = found;
    if (values) {
      this.#states.set(name, values);
      for (const action of this.#listeners.get(name) ?? []) action();
    }
    this.#onVisit(name);
  }

  /**
   * @param {string} name
   * @returns {SectionState}
   */
  section(name) {
    const read = () => this.#states.get(name) ?? {};
    return {
      name,
      read,
      write: (values) => {
        this.#states.set(name, values);
        history.replaceState(history.state, '', toHash(name, values));
      },
      listen: (action) => void this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), action]),
      link: () => new URL(toHash(name, read()), location.href).href,
    };
  }
}
