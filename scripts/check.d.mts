/**
 * Format, lint, types, and the arrows between the folders.
 *
 *   npm run check                    everything
 *   npm run check -- --only types    some parts
 */
export {};
