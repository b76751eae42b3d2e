#!/usr/bin/env node
// The program `sdpa`. Everything it does is in main.js, which has no effect when it is imported.

import { main } from './main.js';

process.exitCode = await main(process.argv.slice(2), process);
