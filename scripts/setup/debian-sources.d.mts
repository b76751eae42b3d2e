/** Reads the system's package sources, in both formats (sources.list(5)): one line each, and deb822. */
export type Source = {
    /**
     * without a trailing slash
     */
    uri: string;
    suite: string;
    components: string[];
    signedBy?: string;
};
/**
 * @typedef {object} Source
 * @property {string} uri without a trailing slash
 * @property {string} suite
 * @property {string[]} components
 * @property {string} [signedBy]
 */
/**
 * @param {string} text of a `.list` file
 * @returns {Source[]}
 */
export declare function parseOneLine(text: string): Source[];
/**
 * @param {string} text of a `.sources` file
 * @returns {Source[]}
 */
export declare function parseDeb822(text: string): Source[];
/**
 * @param {string} [etc] apt's configuration folder
 * @returns {Source[]} binary package sources of the system, in apt's order
 */
export declare function systemSources(etc?: string): Source[];
/**
 * The distribution's own archives among the sources (not those of other vendors).
 *
 * @param {Source[]} sources
 * @returns {Source[]}
 */
export declare function distributionSources(sources: Source[]): Source[];
/**
 * @param {Source[]} sources
 * @returns {string | undefined} address of the Debian mirror that the system uses
 */
export declare function debianMirror(sources: Source[]): string | undefined;
