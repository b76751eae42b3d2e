// WebKit, as shipped and with its switches: it has no relaxed SIMD, and with the switch rounds twice.

import { oneSiteIn, sitesIn } from '../helpers/sites-in.mjs';
import { noWebKit, openWebKit } from '../helpers/webkit.mjs';

sitesIn({ name: 'WebKit', skip: noWebKit, variant: 'simd', open: () => openWebKit() });
for (const [name, variant, switches] of /** @type {[string, string, Record<string, string>][]} */ ([
  ['WebKit with relaxed SIMD', 'simd', { JSC_useWasmRelaxedSIMD: '1' }],
  ['WebKit with SharedArrayBuffer', 'simd', { JSC_useSharedArrayBuffer: '1' }],
  ['WebKit without SIMD', 'scalar', { JSC_useWasmSIMD: '0' }],
])) {
  oneSiteIn({ name, skip: noWebKit, variant, open: () => openWebKit(switches) });
}
