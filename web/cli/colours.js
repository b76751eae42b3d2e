// A colour map for numbers from 0 to 1 in which equal steps look equal.
//
// It is a path through Oklab (Ottosson 2020), from a dark violet over blue, teal and green to a light yellow: lightness rises evenly,
// the hue turns evenly, and the chroma is what all hues on the way have within sRGB. It is walked by its length, so that equal steps of
// the number are equal distances in Oklab. Lightness alone tells the numbers apart, for those who see no hues and in print.

/** Lightness, and hue in degrees, at both ends. */
const kLightness = [0.16, 0.94];
const kHue = [305, 100];

/** Of the chroma that sRGB holds at each place. */
const kShare = 0.92;

/** No more than this, so that the ends are not the only pale ones. */
const kMostChroma = 0.16;

const kColours = 256;

/** Of places that are no number. */
export const kNotANumber = [190, 60, 110];

/**
 * @param {number} lightness
 * @param {number} a
 * @param {number} b
 * @returns {number[]} linear sRGB, between 0 and 1 where the colour can be shown
 */
function linearOf(lightness, a, b) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

/** @param {number} linear */
function byteOf(linear) {
  const x = Math.min(1, Math.max(0, linear));
  return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
}

/**
 * The place in Oklab at share t of the way in lightness and hue.
 * @param {number} t
 * @returns {[number, number, number]}
 */
function placeAt(t) {
  const lightness = kLightness[0] + t * (kLightness[1] - kLightness[0]);
  const hue = ((kHue[0] + t * (kHue[1] - kHue[0])) * Math.PI) / 180;
  const at = (/** @type {number} */ chroma) =>
    /** @type {[number, number, number]} */ ([lightness, chroma * Math.cos(hue), chroma * Math.sin(hue)]);
  let [low, high] = [0, 0.4];
  for (let i = 0; i < 24; i++) {
    const chroma = (low + high) / 2;
    if (linearOf(...at(chroma)).every((x) => x >= 0 && x <= 1)) low = chroma;
    else high = chroma;
  }
  return at(Math.min(kMostChroma, kShare * low));
}

/**
 * @returns {number[][]} kColours colours [red, green, blue], 0 … 255, the smallest number's first
 */
export function makeColours() {
  const steps = 2048;
  const places = Array.from({ length: steps + 1 }, (_, i) => placeAt(i / steps));
  const lengths = [0];
  for (let i = 1; i <= steps; i++) {
    lengths.push(lengths[i - 1] + Math.hypot(...places[i].map((x, d) => x - places[i - 1][d])));
  }
  let i = 0;
  return Array.from({ length: kColours }, (_, n) => {
    const length = (n / (kColours - 1)) * lengths[steps];
    while (i < steps - 1 && lengths[i + 1] < length) i++;
    const share = (length - lengths[i]) / (lengths[i + 1] - lengths[i]);
    const [lightness, a, b] = places[i].map((x, d) => x + share * (places[i + 1][d] - x));
    return linearOf(lightness, a, b).map(byteOf);
  });
}
