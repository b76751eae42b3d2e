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
  {
    name: 'tiles',
    title: 'How the tiles work',
    short: 'Tiles',
    lead:
      'A softmax seems to need the whole row. It does not: a running maximum and a running sum are enough, put right by one ' +
      'multiplication whenever the maximum rises. Step through it.',
  },
  {
    name: 'sqrt-d',
    title: 'Why √d',
    short: 'Why √d',
    lead:
      'Scores are divided by the root of the head size. Leave it out, and with larger heads one key takes everything and the ' +
      'gradient vanishes. Move the sliders.',
  },
  {
    name: 'mask-lab',
    title: 'Mask lab',
    short: 'Masks',
    lead:
      'Who may attend to whom. Combine rules, or draw your own; what no query may see is not computed at all, and a query that ' +
      'sees nothing gives zeros.',
  },
];
