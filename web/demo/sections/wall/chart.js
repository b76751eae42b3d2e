// Memory against tokens on two logarithmic axes, as SVG.

import { sizeText, whole } from '../../parts/format.js';

const height = 300;
const margin = { top: 16, right: 14, bottom: 48, left: 62 };
const leastBytes = 1e4;
const mostBytes = 1e11;

/**
 * @typedef {object} Curve
 * @property {string} name written beside its end
 * @property {'ours' | 'plain'} kind
 * @property {(tokens: number) => number} bytes
 */

/**
 * @param {number} width in CSS pixels
 * @param {object} content
 * @param {readonly number[]} content.tokens ascending; the axis reaches from the first to the last
 * @param {readonly Curve[]} content.curves
 * @param {ReadonlyMap<number, number>} content.measured tokens to bytes
 * @param {number} content.here the number of tokens that is set
 * @returns {SVGSVGElement}
 */
export function drawChart(width, { tokens, curves, measured, here }) {
  const first = tokens[0];
  const last = tokens[tokens.length - 1];
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  /** @param {number} count */
  const x = (count) => margin.left + (inner.width * Math.log(count / first)) / Math.log(last / first);
  /** @param {number} bytes */
  const y = (bytes) =>
    margin.top + inner.height * (1 - Math.log(bytes / leastBytes) / Math.log(mostBytes / leastBytes));

  const svg = element('svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'img' });
  svg.append(element('title', {}, describe(curves, here)));
  for (let bytes = leastBytes; bytes <= mostBytes; bytes *= 10) {
    svg.append(
      element('line', { class: 'grid', x1: margin.left, x2: width - margin.right, y1: y(bytes), y2: y(bytes) }),
      element(
        'text',
        { x: margin.left - 10, y: y(bytes) + 4, 'text-anchor': 'end' },
        sizeText(bytes).replace('.00', '').replace('.0', ''),
      ),
    );
  }
  // Every second octave where there is room, else every fourth.
  const step = width < 480 ? 16 : 4;
  for (let count = first; count <= last; count *= step) {
    svg.append(element('text', { x: x(count), y: height - margin.bottom + 20, 'text-anchor': 'middle' }, whole(count)));
  }
  svg.append(
    element('text', { x: margin.left + inner.width / 2, y: height - 4, 'text-anchor': 'middle' }, 'tokens'),
    element('line', { class: 'here', x1: x(here), x2: x(here), y1: margin.top, y2: height - margin.bottom }),
  );
  for (const { name, kind, bytes } of curves) {
    // Both are straight lines here.
    const points = [first, last].map((count) => `${x(count)},${y(bytes(count))}`).join(' ');
    const labelled = last / 6;
    svg.append(
      element('polyline', { class: `line ${kind}`, points }),
      element(
        'text',
        {
          class: kind,
          x: x(labelled) + (kind === 'ours' ? 8 : -8),
          y: y(bytes(labelled)) + (kind === 'ours' ? 22 : -8),
          'text-anchor': kind === 'ours' ? 'start' : 'end',
        },
        name,
      ),
    );
  }
  for (const [count, bytes] of measured) {
    const dot = element('circle', { cx: x(count), cy: y(bytes), r: 5.5 });
    dot.append(element('title', {}, `${whole(count)} tokens: ${sizeText(bytes)} measured`));
    svg.append(dot);
  }
  return /** @type {SVGSVGElement} */ (svg);
}

/**
 * @param {readonly Curve[]} curves
 * @param {number} here
 */
function describe(curves, here) {
  const parts = curves.map(({ name, bytes }) => `${name} ${sizeText(bytes(here))}`);
  return `Memory against tokens. At ${whole(here)} tokens: ${parts.join(', ')}.`;
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [text]
 */
function element(name, attributes, text) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, setting] of Object.entries(attributes)) node.setAttribute(key, String(setting));
  if (text !== undefined) node.textContent = text;
  return node;
}
