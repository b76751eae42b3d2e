/**
 * Debian packages without root: a private apt configuration with its own state and cache, from which packages are
 * fetched (apt checks signatures and hashes) and unpacked into a folder. Nothing of the system's own apt is touched.
 */

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandError, run, tryRun, UserError } from '../lib/exec.mjs';
import { megabytes } from '../lib/log.mjs';

/** @typedef {import('./debian-sources.mjs').Source} Source */
/** @typedef {{ name: string, version: string, size: number, depends: string[] }} Package */

/** Settings of the system that concern the way to the network; everything else (hooks!) stays out. */
const KEPT_SETTINGS = /^Acquire::(http|https|ftp|socks|Retries|ForceIPv|Check-|Max-|GzipIndexes|CompressionTypes)/i;

export class PrivateApt {
  /**
   * @param {object} options
   * @param {string} options.dir folder for state, cache and downloads (created)
   * @param {Source[]} options.sources
   * @param {string} options.architecture as Debian spells it
   * @param {import('../lib/log.mjs').Log} options.log
   */
  constructor({ dir, sources, architecture, log }) {
    this.dir = dir;
    this.sources = sources;
    this.architecture = architecture;
    this.log = log;
    this.env = { ...process.env, APT_CONFIG: join(dir, 'apt.conf'), LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' };
  }

  /** Writes the configuration and fetches the package lists. */
  async update() {
    const { dir } = this;
    for (const folder of ['state/lists/partial', 'cache/archives/partial', 'empty', 'debs']) {
      mkdirSync(join(dir, folder), { recursive: true });
    }
    writeFileSync(join(dir, 'state/status'), '');
    writeFileSync(
      join(dir, 'sources.list'),
      this.sources
        .map(({ uri, suite, components, signedBy }) => {
          const options = signedBy ? `[signed-by=${signedBy}] ` : '';
          return `deb ${options}${uri} ${suite} ${components.join(' ')}\n`;
        })
        .join(''),
    );
    const { stdout } = await run(['apt-config', 'dump'], { env: { ...this.env, APT_CONFIG: undefined } });
    const kept = stdout.split('\n').filter((line) => KEPT_SETTINGS.test(line));
    writeFileSync(
      join(dir, 'apt.conf'),
      [
        ...kept,
        `Dir::State "${dir}/state";`,
        `Dir::State::status "${dir}/state/status";`,
        `Dir::Cache "${dir}/cache";`,
        `Dir::Etc::main "/dev/null";`,
        `Dir::Etc::parts "${dir}/empty";`,
        `Dir::Etc::sourcelist "${dir}/sources.list";`,
        `Dir::Etc::sourceparts "${dir}/empty";`,
        `Dir::Etc::preferences "/dev/null";`,
        `Dir::Etc::preferencesparts "${dir}/empty";`,
        `APT::Architecture "${this.architecture}";`,
        `APT::Architectures { "${this.architecture}"; };`,
        // Without this the folder would have to be open to the user _apt when root runs the script.
        'APT::Sandbox::User "root";',
        'APT::Update::Error-Mode "any";',
        // Snapshot archives and mirrors that lag have lists past their date; signatures are checked all the same.
        'Acquire::Check-Valid-Until "false";',
        'Acquire::Languages "none";',
        'Acquire::Retries "3";',
        'Acquire::http::Timeout "30";',
        'Acquire::https::Timeout "30";',
        '',
      ].join('\n'),
    );
    const where = [...new Set(this.sources.map(({ uri, suite }) => `${uri} ${suite}`))].join(', ');
    this.log(`reading the package lists of ${where}`);
    try {
      await run(['apt-get', '-q', 'update'], { env: this.env });
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      const reasons = error.result.output.split('\n').filter((line) => /^[EW]: /.test(line));
      throw new UserError(
        `cannot read the package lists of ${where}; is there a network? apt-get says:\n    ${reasons.slice(0, 4).join('\n    ')}`,
      );
    }
  }

  /**
   * @param {string[]} names
   * @returns {Promise<Package[]>} the newest version of each; names that the sources do not have are left out
   */
  async show(names) {
    const { stdout } = await tryRun(['apt-cache', 'show', '--no-all-versions', ...names], { env: this.env });
    return stdout
      .split(/\n\n+/)
      .filter((stanza) => stanza.trim() !== '')
      .map(parseStanza);
  }

  /**
   * @param {string[]} roots
   * @param {(name: string) => boolean} follow says which dependencies are wanted
   * @returns {Promise<Package[]>} the roots and what they need, each once
   */
  async closure(roots, follow) {
    /** @type {Map<string, Package>} */
    const found = new Map();
    let wanted = roots;
    while (wanted.length > 0) {
      for (const item of await this.show(wanted)) found.set(item.name, item);
      const missing = roots.filter((name) => !found.has(name));
      if (missing.length > 0) {
        const where = this.sources.map(({ uri, suite }) => `${uri} ${suite}`).join(', ');
        throw new UserError(`${where} has no package ${missing.join(', ')} for ${this.architecture}`);
      }
      const asked = wanted;
      wanted = [...new Set([...found.values()].flatMap(({ depends }) => depends))].filter(
        (name) => !found.has(name) && !asked.includes(name) && follow(name),
      );
    }
    return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Fetches the packages and unpacks them over each other.
   *
   * @param {Package[]} packages
   * @param {string} into folder (created)
   */
  async unpack(packages, into) {
    const debs = join(this.dir, 'debs');
    mkdirSync(into, { recursive: true });
    const bytes = packages.reduce((sum, { size }) => sum + size, 0);
    this.log(`fetching ${packages.length} packages, ${megabytes(bytes)}`);
    await run(['apt-get', '-q', 'download', ...packages.map(({ name, version }) => `${name}=${version}`)], {
      cwd: debs,
      env: this.env,
    });
    this.log(`unpacking into ${into}`);
    for (const { name } of packages) {
      const file = readdirSync(debs).find((entry) => entry.startsWith(`${name}_`));
      if (!file) throw new Error(`apt-get download left no file for ${name} in ${debs}`);
      await run(['dpkg-deb', '-x', join(debs, file), into]);
    }
  }
}

/**
 * @param {string} stanza of a Packages file
 * @returns {Package}
 */
export function parseStanza(stanza) {
  /** @param {string} name */
  const field = (name) => new RegExp(`^${name}: (.*)$`, 'm').exec(stanza)?.[1] ?? '';
  const depends = [field('Depends'), field('Pre-Depends')]
    .join(',')
    .split(',')
    // Of alternatives the first is the usual one; versions and architecture qualifiers do not matter within one suite.
    .map((item) =>
      item
        .split('|')[0]
        .replace(/\(.*?\)|:\w+/g, '')
        .trim(),
    )
    .filter(Boolean);
  return { name: field('Package'), version: field('Version'), size: Number(field('Size')), depends };
}
