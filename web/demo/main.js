// The page. Each section is a folder of its own whose script is fetched when it comes near the window or is linked to.
//
// To add a section NAME:
//
// 1. An entry in sections.js: its name, titles, and a lead that is there before its script is.
// 2. sections/NAME/section.js, which exports
//
//      export function mount(root, context) { … }      // may be async; root: an empty <div> below the section's title
//
//    and sections/NAME/style.css (may be empty). Rules there begin with #NAME. The heading (h2), the button "Link" and
//    the place of the code are there already; headings inside are h3.
// 3. context (scaffold/sections.js): `instance({ variant, threads })` → the shared Sdpa; `state`, this section's part of
//    the address; `showCode(text)`, at most ten lines that run as they stand in Node; `announce(text)` for screen readers.
// 4. parts/: `controls(specs, state, onChange)` builds sliders, choices and switches and keeps them in the address;
//    `HeatMap` (heat-map.js), `LinePlot` (line-plot.js), `figures` (a few large numbers), `statusLine` (status.js), `Pace`
//    (slices: call `await pace.rest()` where `pace.left` is spent, so that no task is long; or compute by attentionAsync of
//    an instance with threads), `normal(seed)` (data.js), numbers as text (format.js), files (download.js), elements
//    (dom.js: make, makeSvg, byId, reducedMotion, onTheme).
// 5. Tests: tests/browser/demo-NAME.test.mjs; `sectionReady(page, name)` of helpers/demo.mjs waits for data-state="ready".
//
// The policy in scripts/serve.mjs holds: no inline script, no style attribute in markup (element.style is allowed),
// no other host. Colours come from style/base.css, and nothing is told by colour alone.

import { byId } from './parts/dom.js';
import { Permalinks } from './scaffold/permalink.js';
import { makeNavigation, placeSections } from './scaffold/sections.js';
import { sections } from './sections.js';

const links = new Permalinks(
  sections.map(({ name }) => name),
  (name) => void placed.visit(name),
);
const placed = placeSections(sections, links);
byId('starting').remove();
byId('sections').append(...placed.elements);
byId('sections').before(makeNavigation(sections, placed.elements));
links.take();
placed.watch();
