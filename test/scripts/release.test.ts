import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { isNewer, isVersion, releaseChanges, setVersion } from '../../packaging/release.ts';
import { manifest } from '../../packaging/source.ts';
import { REPOSITORY } from '../lab/built-program.ts';
import { run } from '../lab/run.ts';

const head = '# Changelog\n\nWhat changed.\n\n';
const unreleased = '## [Unreleased]\n\n### Added\n\n- A thing.\n\n';
const older = '## [0.1.0] - 2026-11-21\n\n### Added\n\n- The first.\n';

test('versions are ordered as semver.org orders them', () => {
  // https://semver.org/#spec-item-11
  const order = ['1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-alpha.beta', '1.0.0-beta', '1.0.0-beta.2', '1.0.0-beta.11'];
  const all = [...order, '1.0.0-rc.1', '1.0.0', '1.0.9', '1.0.10', '1.2.0', '2.0.0', '10.0.0'];
  for (const [i, one] of all.entries()) {
    for (const [j, other] of all.entries()) expect([one, other, isNewer(one, other)]).toEqual([one, other, i > j]);
  }
  for (const no of ['1', '1.2', 'v1.2.3', '1.2.3.4', '01.2.3', '1.2.3-', '1.2.3-01', '1.2.3+build', ' 1.2.3', '']) {
    expect([no, isVersion(no)]).toEqual([no, false]);
  }
});

describe('what a release changes', () => {
  it('moves what is unreleased under the version', () => {
    const moved = releaseChanges(head + unreleased + older, '0.2.0', '2026-12-01');
    expect(moved).toBe(`${head}## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- A thing.\n\n${older}`);
    expect(releaseChanges(head + unreleased, '0.2.0', '2026-12-01')).toContain('## [0.2.0] - 2026-12-01\n\n### Added');
  });

  it.each([
    ['no section', head + older, /no section "## \[Unreleased\]"/],
    ['nothing in it', `${head}## [Unreleased]\n\n### Added\n\n${older}`, /lists no change under \[Unreleased\]/],
    ['the version there', head + unreleased + older.replace('0.1.0', '0.2.0'), /an entry of 0\.2\.0 already/],
  ])('refuses a changelog with %s', (_, changelog, message) => {
    expect(() => releaseChanges(changelog, '0.2.0', '2026-12-01')).toThrow(message);
  });

  it('sets the version of the project alone, and writes the files as npm does', () => {
    for (const name of ['package.json', 'package-lock.json']) {
      const text = readFileSync(join(REPOSITORY, name), 'utf8');
      expect(setVersion(text, manifest.version)).toBe(text);
      const changed = setVersion(text, '77.0.0')
        .split('\n')
        .filter((line) => line.includes('77.0.0'));
      expect(changed.length).toBe(name === 'package.json' ? 1 : 2);
    }
  });
});

describe('scripts/release', () => {
  let folder: string;
  const git = async (...args: string[]) => (await run(['git', '-C', folder, ...args])).stdout;
  const release = (...args: string[]) =>
    run([join(folder, 'scripts/release'), ...args], {
      env: { ...process.env, CPN_SETUP: 'check' },
      allowFailure: true,
      timeoutMs: 120_000,
    });

  /** A repository of these sources as they are, committed or not. */
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'cpn-release-'));
    const wanted = [
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'package.json',
      'package-lock.json',
      'tsconfig.json',
      '.gitignore',
    ];
    for (const name of [...wanted, 'packaging', 'scripts', 'src']) {
      cpSync(join(REPOSITORY, name), join(folder, name), { recursive: true });
    }
    symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'CHANGELOG.md'), head + unreleased + older);
    await git('init', '--quiet');
    writeFileSync(join(folder, '.git/info/exclude'), 'node_modules\n');
    for (const [key, value] of Object.entries({ name: 'a tester', email: 'tester@example.net' })) {
      await git('config', `user.${key}`, value);
    }
    await git('add', '.');
    await git('commit', '--quiet', '-m', 'everything');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each([
    [['1.2'], '"1.2" is no version'],
    [['0.1.0-rc.1'], `0.1.0-rc.1 is not newer than ${manifest.version}`],
    [['99.0.0', '--date', 'today'], '--date today is no day'],
    [['99.0.0', '--folder', 'src'], '/src is not empty; name another --folder'],
    [[], 'name the version'],
  ])('refuses %j, and changes nothing', async (args, message) => {
    const { exitCode, stderr } = await release(...args);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(message)]);
    expect(await git('status', '--porcelain')).toBe('');
  });

  it('refuses what is not committed, and prints for a dry run what it would do', async () => {
    const stray = join(folder, 'stray');
    writeFileSync(stray, '');
    const dirty = await release('99.0.0', '--dry-run');
    expect([dirty.exitCode, dirty.stderr]).toEqual([1, expect.stringContaining('not committed:\n?? stray')]);
    rmSync(stray);
    const { exitCode, stdout } = await release('99.0.0', '--dry-run');
    expect([exitCode, stdout.trimEnd().split('\n')]).toEqual([
      0,
      expect.arrayContaining(['would run scripts/test ci']),
    ]);
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .filter((line) => !line.startsWith('would ')),
    ).toEqual([]);
    expect([await git('status', '--porcelain'), await git('tag')]).toEqual(['', '']);
  });

  it('leaves everything as it was when a check fails', async () => {
    writeFileSync(join(folder, 'scripts/test'), '#!/bin/sh\nexit 1\n');
    await git('commit', '--quiet', '-am', 'a check that fails');
    const { exitCode, stderr } = await release('99.0.0', 'npm');
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('scripts/test ci failed')]);
    expect([await git('status', '--porcelain'), await git('tag')]).toEqual(['', '']);
  });

  it('sets the version, writes the changelog, checks, commits, tags, and packs what the tag names', async () => {
    // A check that sees the new version is there before the commit.
    const checks = `#!/bin/sh\ncd "$(dirname "$0")/.." && grep -q '"version": "99.0.0"' package.json && touch .git/checked\n`;
    writeFileSync(join(folder, 'scripts/test'), checks);
    await git('commit', '--quiet', '-am', 'a check');
    const { exitCode, stderr } = await release('99.0.0', '--date', '2026-12-01', 'npm');
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(await git('status', '--porcelain')).toBe('');
    expect(await git('show', '--no-patch', '--format=%s', 'v99.0.0^{commit}')).toBe('release: 99.0.0\n');
    expect(await git('rev-parse', 'v99.0.0^{commit}')).toBe(await git('rev-parse', 'HEAD'));
    expect((await git('show', '--name-only', '--format=', 'HEAD')).trim().split('\n')).toEqual([
      'CHANGELOG.md',
      'package-lock.json',
      'package.json',
    ]);
    expect(await git('show', 'HEAD:CHANGELOG.md')).toContain('## [99.0.0] - 2026-12-01\n\n### Added\n\n- A thing.');
    expect(existsSync(join(folder, '.git/checked'))).toBe(true);
    const packages = join(folder, 'dist-packages/99.0.0');
    const sums = await run(['env', '-C', packages, 'sha256sum', '--check', '--strict', 'SHA256SUMS']);
    expect(sums.stdout).toBe('cpn-connector-99.0.0.tgz: OK\n');
    expect((await run([join(folder, 'dist/cpn.js'), '--version'])).stdout).toBe('99.0.0\n');
  });
});
