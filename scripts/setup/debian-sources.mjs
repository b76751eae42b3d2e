/** Reads the system's package sources, in both formats (sources.list(5)): one line each, and deb822. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

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
export function parseOneLine(text) {
  const sources = [];
  for (const line of text.split('\n')) {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)/.exec(line);
    if (!match) continue;
    const [, options = '', uri, suite, components] = match;
    sources.push({
      uri: uri.replace(/\/+$/, ''),
      suite,
      components: components.split(/\s+/).filter(Boolean),
      signedBy: /(?:^|\s)signed-by=(\S+)/.exec(options)?.[1],
    });
  }
  return sources;
}

/**
 * @param {string} text of a `.sources` file
 * @returns {Source[]}
 */
export function parseDeb822(text) {
  const withoutComments = text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n');
  const sources = [];
  for (const stanza of withoutComments.split(/\n[ \t]*\n/)) {
    /** @type {Record<string, string>} */
    const fields = {};
    let name = '';
    for (const line of stanza.split('\n')) {
      const match = /^([A-Za-z][\w-]*):(.*)$/.exec(line);
      if (match) {
        name = match[1].toLowerCase();
        fields[name] = match[2];
      } else if (name) fields[name] += `\n${line}`;
    }
    /** @param {string} key */
    const words = (key) => (fields[key] ?? '').split(/\s+/).filter(Boolean);
    if (!words('types').includes('deb') || fields.enabled?.trim().toLowerCase() === 'no') continue;
    // An embedded key spans lines; only a file name can be passed on.
    const signedBy = words('signed-by').length === 1 ? words('signed-by')[0] : undefined;
    for (const uri of words('uris')) {
      for (const suite of words('suites')) {
        sources.push({ uri: uri.replace(/\/+$/, ''), suite, components: words('components'), signedBy });
      }
    }
  }
  return sources;
}

/**
 * @param {string} [etc] apt's configuration folder
 * @returns {Source[]} binary package sources of the system, in apt's order
 */
export function systemSources(etc = '/etc/apt') {
  /** @param {string} file */
  const read = (file) => {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return '';
    }
  };
  /** @type {string[]} */
  let parts = [];
  try {
    parts = readdirSync(join(etc, 'sources.list.d')).sort();
  } catch {
    // no such folder: sources.list alone
  }
  return [
    ...parseOneLine(read(join(etc, 'sources.list'))),
    ...parts
      .filter((name) => name.endsWith('.list'))
      .flatMap((name) => parseOneLine(read(join(etc, 'sources.list.d', name)))),
    ...parts
      .filter((name) => name.endsWith('.sources'))
      .flatMap((name) => parseDeb822(read(join(etc, 'sources.list.d', name)))),
  ];
}

/**
 * The distribution's own archives among the sources (not those of other vendors).
 *
 * @param {Source[]} sources
 * @returns {Source[]}
 */
export function distributionSources(sources) {
  return sources.filter(
    (source) =>
      source.components.includes('main') &&
      /\/(debian|debian-security|ubuntu|ubuntu-ports)$/.test(archivePath(source.uri)),
  );
}

/**
 * @param {Source[]} sources
 * @returns {string | undefined} address of the Debian mirror that the system uses
 */
export function debianMirror(sources) {
  return distributionSources(sources).find((source) => archivePath(source.uri).endsWith('/debian'))?.uri;
}

/**
 * Snapshot archives append a time to the archive's name.
 *
 * @param {string} uri
 */
function archivePath(uri) {
  return uri.replace(/\/\d{8}T\d{6}Z$/, '');
}
