// Firefox: relaxed SIMD, fused where the processor does it.

import { fastest } from '../helpers/apps.mjs';
import { noFirefox, openFirefox } from '../helpers/firefox.mjs';
import { oneSiteIn, sitesIn } from '../helpers/sites-in.mjs';

sitesIn({ name: 'Firefox', skip: noFirefox, variant: fastest, open: () => openFirefox() });
oneSiteIn({
  name: 'Firefox without relaxed SIMD',
  skip: noFirefox,
  variant: 'simd',
  open: () => openFirefox({ 'javascript.options.wasm_relaxed_simd': false }),
});
