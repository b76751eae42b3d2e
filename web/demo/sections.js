// The sections of the page, in their order. How one is added: main.js.

/** @type {readonly import('./scaffold/sections.js').SectionEntry[]} */
export const sections = [
  {
    name: 'wall',
    title: 'The memory wall',
    short: 'Memory wall',
    lead:
      'Plain attention over L tokens stores L × L scores. This computes the same result, to the last row, in memory ' +
      'that grows with L alone. Choose a length and run it.',
  },
];
