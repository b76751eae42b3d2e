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
  {
    name: 'map',
    title: 'Map explorer',
    short: 'Map',
    lead:
      'A map of 32 768 × 32 768 weights has a thousand million cells. Here it is pooled for the eye, and any part of it is ' +
      'computed when you zoom in, down to the single weight. Slide to the right, or bring your own tensors.',
  },
  {
    name: 'positions',
    title: 'Where a token stands',
    short: 'Positions',
    lead:
      'Attention by itself does not know the order of its tokens. Rotary embeddings turn query and key like the hands of clocks, ' +
      'and only the angle between them counts; the first transformers added sines.',
  },
  {
    name: 'sentence',
    title: 'A sentence, word by word',
    short: 'Sentence',
    lead:
      'What each word looks at, as lines and as a matrix. The weights are those of a head that was trained in this page, ' +
      'or of your own tensors. Choose a word on the left.',
  },
  {
    name: 'race',
    title: 'The alternatives, raced',
    short: 'Race',
    lead:
      'Windows, sparse blocks and states are quicker than exact attention on a long input. This is what they cost and what ' +
      'they still find: every method gets the same needles to look for.',
  },
  {
    name: 'train',
    title: 'Train a head',
    short: 'Train',
    lead:
      'A head that knows nothing learns where to look, in this tab, from the real backward pass. Start it, watch the weights ' +
      'move to where they belong, stop it at any time.',
  },
];
