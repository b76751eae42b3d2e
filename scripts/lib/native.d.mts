/** Native builds through CMake's presets, and their tests. */
/**
 * Configures and builds a preset.
 *
 * @param {object} options
 * @param {string} options.preset
 * @param {NodeJS.ProcessEnv} options.env
 * @param {string[]} [options.targets] all by default
 */
export declare function buildPreset({ preset, env, targets }: {
    preset: string;
    env: NodeJS.ProcessEnv;
    targets?: string[];
}): Promise<void>;
/**
 * Runs a preset's tests with ctest, which must find some.
 *
 * @param {object} options
 * @param {string} options.dir build folder
 * @param {string} options.name for the log's name
 * @param {NodeJS.ProcessEnv} options.env
 * @returns {Promise<import('./parts.mjs').Counts>}
 */
export declare function runCtest({ dir, name, env }: {
    dir: string;
    name: string;
    env: NodeJS.ProcessEnv;
}): Promise<import('./parts.mjs').Counts>;
/**
 * @param {string} xml as ctest writes it
 * @returns {import('./parts.mjs').Counts}
 */
export declare function countJunit(xml: string): import('./parts.mjs').Counts;
