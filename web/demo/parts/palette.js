// Colours of a heat map: lightness changes evenly with the number, so that the order of cells can be seen without colour.

import { isDark } from './dom.js';

/**
 * sRGB of a colour in OKLCH (Ottosson 2020), cut to what screens can show.
 * @param {number} lightness 0 … 1
 * @param {number} chroma
 * @param {number} hue in degrees
 * @returns {[red: number, green: number, blue: number]} 0 … 255
 */
function fromOklch(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const bytes = linear.map((x) => {
    const cut = Math.min(1, Math.max(0, x));
    return Math.round(255 * (cut <= 0.0031308 ? 12.92 * cut : 1.055 * cut ** (1 / 2.4) - 0.055));
  });
  return /** @type {[number, number, number]} */ (bytes);
}

/** Steps of a palette. */
const steps = 256;

/**
 * From the page's ground to its opposite: 0 looks like nothing in light and in dark.
 * @param {boolean} dark
 * @returns {Uint8ClampedArray} (steps, 4): red, green, blue, 255
 */
export function makePalette(dark) {
  const palette = new Uint8ClampedArray(4 * steps);
  for (let k = 0; k < steps; k++) {
    const t = k / (steps - 1);
    const lightness = dark ? 0.235 + 0.715 * t : 0.965 - 0.695 * t;
    // Towards the middle the colour is strongest; its hue goes from yellow by teal to blue, or back.
    const chroma = 0.012 + 0.1 * Math.sin(Math.PI * Math.min(1, 0.1 + 0.85 * t));
    const hue = dark ? 255 - 150 * t : 105 + 160 * t;
    palette.set([...fromOklch(lightness, chroma, hue), 255], 4 * k);
  }
  return palette;
}

/**
 * @param {Uint8ClampedArray} palette
 * @param {number} place 0 … 1
 * @returns {Uint8ClampedArray} red, green, blue, 255
 */
export function colourAt(palette, place) {
  const step = 4 * Math.round(place * (steps - 1));
  return palette.subarray(step, step + 4);
}

/** Of sRGB, with a part that is linear near zero. @param {number} byte */
const linearOf = (byte) => (byte <= 10 ? byte / 3294.6 : ((byte / 255 + 0.055) / 1.055) ** 2.4);

/**
 * @param {ArrayLike<number>} colour red, green, blue
 * @returns {'#000' | '#fff'} whichever has the higher contrast (WCAG 2) to it: 4.58 at least
 */
export function textOn(colour) {
  const luminance = 0.2126 * linearOf(colour[0]) + 0.7152 * linearOf(colour[1]) + 0.0722 * linearOf(colour[2]);
  return (luminance + 0.05) ** 2 > 0.05 * 1.05 ? '#000' : '#fff';
}

/** @type {{ dark: boolean, palette: Uint8ClampedArray } | undefined} */
let kept;

/** The palette of the theme that holds now. */
export function currentPalette() {
  const dark = isDark();
  if (kept?.dark !== dark) kept = { dark, palette: makePalette(dark) };
  return kept.palette;
}

/**
 * The whole palette from left to right.
 * @param {HTMLCanvasElement} canvas of one row
 */
export function drawBar(canvas) {
  const palette = currentPalette();
  const picture = new ImageData(canvas.width, 1);
  for (let x = 0; x < picture.width; x++) {
    picture.data.set(colourAt(palette, x / (picture.width - 1)), 4 * x);
  }
  canvas.getContext('2d')?.putImageData(picture, 0, 0);
}
