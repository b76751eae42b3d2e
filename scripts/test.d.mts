/**
 * Sets up what is missing, builds, and runs every test.
 *
 *   npm test                        everything
 *   npm test -- --only js,native    some parts (and what they need)
 */
export {};
