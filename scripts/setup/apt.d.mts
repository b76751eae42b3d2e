/**
 * Debian packages without root: a private apt configuration with its own state and cache, from which packages are fetched (apt checks
 * signatures and hashes) and unpacked into a folder. Nothing of the system's own apt is touched.
 */
export type Source = import('./debian-sources.mjs').Source;
export type Package = {
    name: string;
    version: string;
    size: number;
    depends: string[];
};
export declare class PrivateApt {
    dir: string;
    sources: import("./debian-sources.mjs").Source[];
    architecture: string;
    log: import("../lib/log.mjs").Log;
    env: {
        APT_CONFIG: string;
        LC_ALL: string;
        DEBIAN_FRONTEND: string;
    };
    /**
     * @param {object} options
     * @param {string} options.dir folder for state, cache and downloads (created)
     * @param {Source[]} options.sources
     * @param {string} options.architecture as Debian spells it
     * @param {import('../lib/log.mjs').Log} options.log
     */
    constructor({ dir, sources, architecture, log }: {
        dir: string;
        sources: Source[];
        architecture: string;
        log: import('../lib/log.mjs').Log;
    });
    /** Writes the configuration and fetches the package lists. */
    update(): Promise<void>;
    /**
     * @param {string[]} names
     * @returns {Promise<Package[]>} the newest version of each; names that the sources do not have are left out
     */
    show(names: string[]): Promise<Package[]>;
    /**
     * @param {string[]} roots
     * @param {(name: string) => boolean} follow says which dependencies are wanted
     * @returns {Promise<Package[]>} the roots and what they need, each once
     */
    closure(roots: string[], follow: (name: string) => boolean): Promise<Package[]>;
    /**
     * Fetches the packages and unpacks them over each other.
     *
     * @param {Package[]} packages
     * @param {string} into folder (created)
     */
    unpack(packages: Package[], into: string): Promise<void>;
}
/**
 * @param {string} stanza of a Packages file
 * @returns {Package}
 */
export declare function parseStanza(stanza: string): Package;
