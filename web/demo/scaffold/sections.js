// The page's sections: their places, and the script of each when it is wanted.

import { announce } from './announcer.js';
import { codeBlock } from './code-block.js';
import { sharedInstance } from './instances.js';
import { copyText, flash } from '../parts/copy.js';
import { make, reducedMotion } from '../parts/dom.js';
import { nextTask } from '../parts/pace.js';

/**
 * @typedef {object} SectionEntry
 * @property {string} name in the address, and of its folder
 * @property {string} title
 * @property {string} short title in the navigation
 * @property {string} lead one or two sentences, there before the script is
 */

/**
 * What a section is given.
 * @typedef {object} SectionContext
 * @property {string} name
 * @property {typeof sharedInstance} instance the shared instance of a build and number of threads
 * @property {import('./permalink.js').SectionState} state this section's part of the address
 * @property {(code: string) => void} showCode the lines that produce what is shown, runnable as they stand
 * @property {typeof announce} announce
 */

/** @typedef {{ mount: (root: HTMLElement, context: SectionContext) => void | Promise<void> }} SectionModule */

/** How far below and above the window a section's script is fetched. */
const near = '600px';

/**
 * @param {readonly SectionEntry[]} entries
 * @param {import('./permalink.js').Permalinks} links
 */
export function placeSections(entries, links) {
  /** @type {Map<string, () => Promise<void>>} */
  const starters = new Map();
  const elements = entries.map((entry, index) => {
    const { element, start } = placeSection(entry, index + 1, links.section(entry.name));
    starters.set(entry.name, start);
    return element;
  });
  const observer = new IntersectionObserver(
    (seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) void starters.get(target.id)?.();
    },
    { rootMargin: near },
  );
  return {
    elements,
    /** From now on sections start by themselves. */
    watch: () => elements.forEach((element) => observer.observe(element)),
    /** Starts a section and moves there. @param {string} name */
    visit: async (name) => {
      const element = elements.find(({ id }) => id === name);
      const go = () => element?.scrollIntoView({ behavior: 'instant', block: 'start' });
      go();
      await starters.get(name)?.();
      go();
    },
  };
}

/**
 * @param {SectionEntry} entry
 * @param {number} number
 * @param {import('./permalink.js').SectionState} state
 */
function placeSection({ name, title, lead }, number, state) {
  const body = make('div', { class: 'body' });
  const code = codeBlock(name, title);
  const link = make(
    'button',
    { type: 'button', class: 'quiet', 'aria-label': `Copy link to ${title} as it is set` },
    'Copy link',
  );
  link.addEventListener('click', async () => {
    const address = state.link();
    history.replaceState(history.state, '', address);
    flash(link, (await copyText(address)) ? 'Copied' : 'In the address');
    announce('The address of this page now leads to what is set in this section.');
  });
  const element = make(
    'section',
    { id: name, 'aria-labelledby': `${name}-title`, 'data-state': 'waiting' },
    make(
      'div',
      { class: 'title-row' },
      make('h2', { id: `${name}-title` }, make('span', { class: 'number' }, String(number)), ' ', title),
      link,
    ),
    make('p', { class: 'lead' }, lead),
    body,
    code.element,
  );
  /** @type {Promise<void> | undefined} */
  let started;
  const context = { name, state, instance: sharedInstance, announce, showCode: code.show };
  return { element, start: () => (started ??= startSection(name, element, body, context)) };
}

/**
 * @param {string} name
 * @param {HTMLElement} element
 * @param {HTMLElement} body
 * @param {SectionContext} context
 */
async function startSection(name, element, body, context) {
  element.dataset.state = 'starting';
  try {
    const folder = new URL(`../sections/${name}/`, import.meta.url);
    /** @type {[SectionModule, void]} */
    const [module] = await Promise.all([import(`${folder}section.js`), loadStyle(`${folder}style.css`)]);
    // Compiling the script and starting it are two tasks.
    await nextTask();
    await module.mount(body, context);
    element.dataset.state = 'ready';
  } catch (error) {
    element.dataset.state = 'failed';
    const text = error instanceof Error ? error.message : String(error);
    body.append(make('p', { role: 'alert', class: 'bad' }, `This section could not start: ${text}`));
  }
}

/**
 * @param {string} href
 * @returns {Promise<void>} once the rules hold; a section without them is still of use
 */
function loadStyle(href) {
  return new Promise((done) => {
    const link = make('link', { rel: 'stylesheet', href, onload: () => done(), onerror: () => done() });
    document.head.append(link);
  });
}

/**
 * Links to all sections; the one in view is marked.
 * @param {readonly SectionEntry[]} entries
 * @param {readonly HTMLElement[]} elements
 * @returns {HTMLElement}
 */
export function makeNavigation(entries, elements) {
  const links = entries.map(({ name, short }) => make('a', { href: `#${name}` }, short));
  const list = make('ol', {}, ...links.map((link) => make('li', {}, link)));
  const nav = make('nav', { 'aria-label': 'Sections' }, list);
  // A line in the upper part of the window: the section that crosses it is the one that is read.
  const observer = new IntersectionObserver(
    (seen) => {
      for (const { isIntersecting, target } of seen) {
        const link = links[elements.indexOf(/** @type {HTMLElement} */ (target))];
        if (!isIntersecting) link.removeAttribute('aria-current');
        else {
          link.setAttribute('aria-current', 'true');
          list.scrollTo({
            left: link.offsetLeft - (list.clientWidth - link.offsetWidth) / 2,
            behavior: reducedMotion() ? 'instant' : 'smooth',
          });
        }
      }
    },
    { rootMargin: '-30% 0px -69% 0px' },
  );
  for (const element of elements) observer.observe(element);
  return nav;
}
