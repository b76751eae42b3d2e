import { makePart } from '../combine-parts.js';
import { workerText } from '../generated/worker-text.js';

export const workers = /* @__PURE__ */ makePart('workers', {}, workerText);
