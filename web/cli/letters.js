// Text in pictures: the few letters that they need, five pixels wide and seven high.

/** @import { Picture } from './png.js' */

const kWidth = 5;
const kHeight = 7;

/** Pixels between letters. */
const kGap = 1;

/** Lines from top to bottom, # = drawn. @type {Record<string, string>} */
const kLetters = {
  0: ' ###/#   #/#  ##/# # #/##  #/#   #/ ###',
  1: '  #/ ##/  #/  #/  #/  #/ ###',
  2: ' ###/#   #/    #/  ##/ #/#/#####',
  3: ' ###/#   #/    #/  ##/    #/#   #/ ###',
  4: '   #/  ##/ # #/#  #/#####/   #/   #',
  5: '#####/#/####/    #/    #/#   #/ ###',
  6: '  ##/ #/#/####/#   #/#   #/ ###',
  7: '#####/    #/   #/  #/  #/ #/ #',
  8: ' ###/#   #/#   #/ ###/#   #/#   #/ ###',
  9: ' ###/#   #/#   #/ ####/    #/   #/ ##',
  '.': '///// ##/ ##',
  '-': '/// ###///',
  '+': '/  #/  #/#####/  #/  #/',
  a: '// ###/    #/ ####/#   #/ ####',
  e: '// ###/#   #/#####/#/ ###',
  g: '// ####/#   #/ ####/    #/ ###',
  h: '#/#/# ##/##  #/#   #/#   #/#   #',
  i: '  #// ##/  #/  #/  #/ ###',
  k: '#/#/#  #/# #/##/# #/#  #',
  m: '//## #/# # #/# # #/#   #/#   #',
  n: '//# ##/##  #/#   #/#   #/#   #',
  q: '// ####/#   #/ ####/    #/    #',
  r: '//# ##/##  #/#/#/#',
  s: '// ####/#/ ###/    #/####',
  t: ' #/ #/###/ #/ #/ #  #/  ##',
  u: '//#   #/#   #/#   #/#  ##/ ## #',
  w: '//#   #/#   #/# # #/# # #/ # #',
  x: '//#   #/ # #/  #/ # #/#   #',
  y: '//#   #/#   #/ ####/    #/ ###',
};

/** @param {string} text */
export const textWidth = (text) => Math.max(0, text.length * (kWidth + kGap) - kGap);

export const textHeight = kHeight;

/**
 * @param {Picture} picture
 * @param {string} text letters that are not known are left out, with their room
 * @param {number} x of its left end
 * @param {number} y of its top
 */
export function drawText(picture, text, x, y) {
  [...text].forEach((letter, n) => {
    const lines = kLetters[letter]?.split('/') ?? [];
    lines.forEach((line, j) => {
      [...line].forEach((pixel, i) => {
        if (pixel === '#') picture.set(x + n * (kWidth + kGap) + i, y + j, [0, 0, 0]);
      });
    });
  });
}
