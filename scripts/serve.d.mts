/**
 * A static server for localhost: the demo page, and pages in the browser tests. Sends a strict Content-Security-Policy, and none of the
 * headers for cross-origin isolation, because the library must not need them.
 */
export type Served = {
    /**
     * without a trailing slash
     */
    url: string;
    port: number;
    /**
     * ends open connections as well
     */
    close: () => Promise<void>;
};
/**
 * @typedef {object} Served
 * @property {string} url without a trailing slash
 * @property {number} port
 * @property {() => Promise<void>} close ends open connections as well
 */
/**
 * Serves a folder on the loopback interface.
 *
 * @param {string} root
 * @param {object} [options]
 * @param {number} [options.port] 0 (default) takes any; another one gives way to the next free one
 * @param {string} [options.host]
 * @param {Record<string, string>} [options.headers] added to each answer
 * @returns {Promise<Served>}
 */
export declare function serve(root: string, { port, host, headers }?: {
    port?: number;
    host?: string;
    headers?: Record<string, string>;
}): Promise<Served>;
/**
 * Only files of this server, no inline script but the page's own import map, no eval but WebAssembly.
 *
 * @param {string} html
 * @returns {string}
 */
export declare function contentSecurityPolicy(html: string): string;
/**
 * @param {string | undefined} text `$PORT`
 * @returns {number}
 */
export declare function parsePort(text: string | undefined): number;
