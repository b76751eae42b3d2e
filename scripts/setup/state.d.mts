/** The stamp that says what a toolchain folder holds: written last, so that an interrupted installation is not taken for a whole one. */
export type State = {
    format: number;
    /**
     * of the machine
     */
    arch: string;
    /**
     * Debian's packages lie in `emscripten/`
     */
    emscripten?: {
        versions: Record<string, string>;
    };
    /**
     * names of what lies in `native/`
     */
    nativeParts: string[];
    nativeVersions: Record<string, string>;
    /**
     * the compiler (path and version) whose test program ran
     */
    tested?: string;
};
/**
 * @typedef {object} State
 * @property {number} format
 * @property {string} arch of the machine
 * @property {{ versions: Record<string, string> }} [emscripten] Debian's packages lie in `emscripten/`
 * @property {string[]} nativeParts names of what lies in `native/`
 * @property {Record<string, string>} nativeVersions
 * @property {string} [tested] the compiler (path and version) whose test program ran
 */
/**
 * @param {string} dir
 * @returns {State}
 */
export declare function readState(dir: string): State;
/**
 * @param {string} dir
 * @param {State} state
 */
export declare function writeState(dir: string, state: State): void;
