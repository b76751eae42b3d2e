/** Builds and runs a small program with the build's flags, once for each variant; the first link builds Emscripten's system libraries. */
/**
 * @param {object} options
 * @param {string} options.emxx
 * @param {string} options.xsimdInclude
 * @param {NodeJS.ProcessEnv} options.env
 * @param {string} options.dir scratch folder (created)
 * @param {import('../lib/log.mjs').Log} options.log
 */
export declare function smokeTest({ emxx, xsimdInclude, env, dir, log }: {
    emxx: string;
    xsimdInclude: string;
    env: NodeJS.ProcessEnv;
    dir: string;
    log: import('../lib/log.mjs').Log;
}): Promise<void>;
