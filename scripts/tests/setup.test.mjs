import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { parseStanza } from '../setup/apt.mjs';
import {
  debianMirror,
  distributionSources,
  parseDeb822,
  parseOneLine,
  systemSources,
} from '../setup/debian-sources.mjs';
import { findInstalledEmscripten, isWantedDependency, versionAtLeast } from '../setup/emscripten.mjs';
import { makeToolchainDir, toolchainDir } from '../setup/paths.mjs';
import { readState, writeState } from '../setup/state.mjs';
import { xsimdFromEnvironment, xsimdVersion } from '../setup/xsimd.mjs';
import { shellExports } from '../setup.mjs';

const scratch = mkdtempSync(join(tmpdir(), 'sdpa-setup-test-'));
after(() => rmSync(scratch, { recursive: true }));

/** @param {string} path @param {string} text */
function write(path, text) {
  const file = join(scratch, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text, { mode: 0o755 });
  return file;
}

describe('the package sources of the system', () => {
  test('are read in the one-line format', () => {
    const text =
      '# deb http://no.example/debian x main\n' +
      'deb [arch=amd64 signed-by=/k.gpg] http://a.example/debian/ bookworm main contrib # remark\n' +
      'deb-src http://a.example/debian bookworm main\n' +
      'deb http://b.example/other stable main\n';
    assert.deepEqual(parseOneLine(text), [
      { uri: 'http://a.example/debian', suite: 'bookworm', components: ['main', 'contrib'], signedBy: '/k.gpg' },
      { uri: 'http://b.example/other', suite: 'stable', components: ['main'], signedBy: undefined },
    ]);
  });

  test('are read in the deb822 format, with comments, several suites and continued lines', () => {
    const text =
      'Types: deb deb-src\n# a remark\nURIs: http://a.example/debian/\nSuites: bookworm\n bookworm-updates\nComponents: main\n' +
      'Signed-By: /k.gpg\n\nTypes: deb\nURIs: http://b.example/debian\nSuites: x\nComponents: main\nEnabled: no\n \n' +
      'Types: deb-src\nURIs: http://c.example/debian\nSuites: x\nComponents: main\n';
    assert.deepEqual(parseDeb822(text), [
      { uri: 'http://a.example/debian', suite: 'bookworm', components: ['main'], signedBy: '/k.gpg' },
      { uri: 'http://a.example/debian', suite: 'bookworm-updates', components: ['main'], signedBy: '/k.gpg' },
    ]);
  });

  test('give the mirror of Debian itself, not that of its security archive or of another vendor', () => {
    write(
      'etc/sources.list',
      'deb http://vendor.example/apt stable main\ndeb http://s.example/debian-security b-security main\n',
    );
    write(
      'etc/sources.list.d/debian.sources',
      'Types: deb\nURIs: http://m.example/debian\nSuites: b\nComponents: main\n',
    );
    write('etc/sources.list.d/off.list.disabled', 'deb http://off.example/debian b main\n');
    const sources = systemSources(join(scratch, 'etc'));
    assert.equal(debianMirror(sources), 'http://m.example/debian');
    assert.deepEqual(
      distributionSources(sources).map(({ uri }) => uri),
      ['http://s.example/debian-security', 'http://m.example/debian'],
    );
    assert.equal(
      debianMirror(parseOneLine('deb http://s.example/archive/debian/20250520T000000Z b main')) !== undefined,
      true,
    );
    assert.equal(debianMirror([]), undefined);
  });
});

test('a package stanza gives name, version, size and the first of alternative dependencies', () => {
  const stanza =
    'Package: clang-21\nVersion: 1:21.1-1\nPre-Depends: zlib1g\nDepends: libc6 (>= 2.34), a | b, python3:any, libstdc++6 (>= 11)\nSize: 139160\n';
  assert.deepEqual(parseStanza(stanza), {
    name: 'clang-21',
    version: '1:21.1-1',
    size: 139160,
    depends: ['libc6', 'a', 'python3', 'libstdc++6', 'zlib1g'],
  });
});

test('of the dependencies the compiler and its libraries are wanted, whatever their number, and nothing else', () => {
  const wanted = [
    'binaryen',
    'clang-22',
    'lld-22',
    'llvm-22',
    'libllvm22',
    'libclang-cpp22',
    'libclang-common-22-dev',
    'libc6',
    'libstdc++6',
    'zlib1g',
  ];
  const unwanted = [
    'python3',
    'nodejs',
    'ccache',
    'libc6-dev',
    'libstdc++-16-dev',
    'libcurl4t64',
    'libclang1-22',
    'binutils',
    'llvm-22-runtime',
  ];
  assert.deepEqual(wanted.filter(isWantedDependency), wanted);
  assert.deepEqual(unwanted.filter(isWantedDependency), []);
});

test('versions are compared by number', () => {
  for (const [a, b, expected] of /** @type {[string, string, boolean][]} */ ([
    ['4.0.18', '4.0.18', true],
    ['4.0.9', '4.0.18', false],
    ['4.1', '4.0.18', true],
    ['10.0.0', '4.0.18', true],
    ['6.0.5+dfsg+~1.41.5-2', '4.0.18', true],
    ['3.1.69', '4.0.18', false],
    ['0', '4.0.18', false],
  ])) {
    assert.equal(versionAtLeast(a, b), expected, `${a} and ${b}`);
  }
});

describe('an installed Emscripten', () => {
  const emxx = write('emsdk/upstream/emscripten/em++', '#!/bin/sh\n');
  write('emsdk/upstream/emscripten/emscripten-version.txt', '"4.0.20"\n');

  test('is found on PATH and in EMSDK, with its version', () => {
    const root = join(scratch, 'emsdk/upstream/emscripten');
    assert.deepEqual(findInstalledEmscripten({ PATH: `/nowhere:${root}` }), { emxx, root, version: '4.0.20' });
    assert.deepEqual(findInstalledEmscripten({ PATH: '', EMSDK: join(scratch, 'emsdk') }), {
      emxx,
      root,
      version: '4.0.20',
    });
    assert.equal(findInstalledEmscripten({ PATH: '/nowhere' }), undefined);
  });

  test('is not one that this project unpacked', () => {
    write('own/usr/share/emscripten/em++', '#!/bin/sh\n');
    write('own/.sdpa-toolchain', '');
    assert.equal(findInstalledEmscripten({ PATH: join(scratch, 'own/usr/share/emscripten') }), undefined);
  });
});

describe('the toolchain folder', () => {
  test('is the variable, else the cache folder of the user', () => {
    assert.equal(toolchainDir({ SDPA_TOOLCHAIN_DIR: '/x/y', XDG_CACHE_HOME: '/c', HOME: '/h' }), '/x/y');
    assert.equal(toolchainDir({ XDG_CACHE_HOME: '/c', HOME: '/h' }), '/c/sdpa/toolchain');
    assert.equal(toolchainDir({ HOME: '/h' }), '/h/.cache/sdpa/toolchain');
  });

  test('that cannot be used is refused by a message with its name and the variable', () => {
    write('a-file', '');
    for (const dir of [join(scratch, 'a-file/x'), '/a:b']) {
      assert.throws(
        () => makeToolchainDir(dir),
        (/** @type {Error} */ error) => error.message.includes(dir) && /SDPA_TOOLCHAIN_DIR/.test(error.message),
      );
    }
  });

  test('runs scripts as CommonJS wherever it lies, inside this project too', () => {
    write('project/package.json', '{ "type": "module" }');
    makeToolchainDir(join(scratch, 'project/tc'));
    const script = write('project/tc/emscripten/tool.js', 'process.stdout.write(typeof require)');
    assert.equal(execFileSync(process.execPath, [script], { encoding: 'utf8' }), 'function');
  });

  test('has a state that survives, and none where it is broken or of another format', () => {
    assert.deepEqual(readState(scratch).nativeParts, []);
    const state = { ...readState(scratch), nativeParts: ['ninja'], tested: 'x 1' };
    writeState(scratch, state);
    assert.deepEqual(readState(scratch), state);
    write('state.json', '{"format": 0, "nativeParts": ["ninja"]}');
    assert.deepEqual(readState(scratch).nativeParts, []);
    write('state.json', '{"form');
    assert.deepEqual(readState(scratch).nativeParts, []);
  });
});

test('XSIMD_INCLUDE_DIR is used when it holds a recent xsimd, and refused by name when not', () => {
  const config = (/** @type {number} */ major) =>
    `#define XSIMD_VERSION_MAJOR ${major}\n#define XSIMD_VERSION_MINOR 3\n#define XSIMD_VERSION_PATCH 0\n`;
  write('new/xsimd/config/xsimd_config.hpp', config(14));
  write('old/xsimd/config/xsimd_config.hpp', config(8));
  assert.equal(xsimdVersion(join(scratch, 'new')), '14.3.0');
  assert.equal(xsimdFromEnvironment({ XSIMD_INCLUDE_DIR: join(scratch, 'new') }), join(scratch, 'new'));
  assert.equal(xsimdFromEnvironment({}), undefined);
  assert.throws(
    () => xsimdFromEnvironment({ XSIMD_INCLUDE_DIR: join(scratch, 'old') }),
    /XSIMD_INCLUDE_DIR is .*old, which holds xsimd 8\.3\.0/,
  );
  assert.throws(() => xsimdFromEnvironment({ XSIMD_INCLUDE_DIR: '/nowhere' }), /no xsimd\/xsimd\.hpp/);
});

test('the shell exports survive spaces and quotes, and PATH keeps what it had', () => {
  const script = `${shellExports({ PATH: "/a b/it's", NAME: '$HOME `x`' })}printf '%s\\n' "$PATH" "$NAME"`;
  assert.equal(
    execFileSync('/bin/sh', ['-c', script], { env: { PATH: '/old' }, encoding: 'utf8' }),
    "/a b/it's:/old\n$HOME `x`\n",
  );
});
