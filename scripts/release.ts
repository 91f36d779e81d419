import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { command } from '../packaging/command.ts';
import { isNewer, isVersion, releaseChanges, setVersion } from '../packaging/release.ts';
import { root } from '../packaging/source.ts';

const usage = `usage: scripts/release VERSION [--dry-run] [--unchecked] [--date YYYY-MM-DD] [--folder DIR] [deb|rpm|npm|container…]

  Sets the version, moves what CHANGELOG.md has under [Unreleased] under it, runs every check, commits, tags, builds the packages
  (without a word all of them) and writes their SHA256SUMS. It pushes nothing; the last lines have the commands for that.

  --dry-run      refuses what a release would refuse, prints what it would do, and changes nothing
  --unchecked    leaves out scripts/test ci
  --date DAY     the day of the release (today, UTC)
  --folder DIR   where the packages go, new or empty (dist-packages/VERSION)
`;

/** Makes a release; refuses before anything is changed. @throws Error with the reason */
function release(argv: readonly string[]): void {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      'dry-run': { type: 'boolean', default: false },
      unchecked: { type: 'boolean', default: false },
      date: { type: 'string', default: new Date().toISOString().slice(0, 10) },
      folder: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const [version, ...kinds] = positionals;
  if (values.help) {
    process.stdout.write(usage);
    return;
  }
  if (version === undefined) throw new Error(`name the version to release\n${usage}`);
  if (!/^\d{4}-\d\d-\d\d$/.test(values.date))
    throw new Error(`--date ${values.date} is no day; write it as 2026-01-31`);
  const folder = resolve(root, values.folder ?? join('dist-packages', version));
  const files = prepareFiles(version, values.date);
  refuseWhatIsNotReady(version, folder);

  const names = Object.keys(files);
  const steps: [what: string, act: () => void][] = [
    [
      `write ${names.join(', ')}`,
      () => names.forEach((name) => void writeFileSync(join(root, name), files[name] ?? '')),
    ],
    ...(values.unchecked ? [] : [['run scripts/test ci', () => check(names)] satisfies [string, () => void]]),
    [`commit "release: ${version}"`, () => void git('commit', '--quiet', '-m', `release: ${version}`, '--', ...names)],
    [`tag v${version}`, () => void git('tag', '-a', `v${version}`, '-m', `cpn ${version}`)],
    [`build ${kinds.join(', ') || 'every package'} in ${relative(root, folder)}`, () => build(folder, kinds)],
    ['write SHA256SUMS', () => writeSums(folder)],
  ];
  for (const [what, act] of steps) {
    say(values['dry-run'] ? `would ${what}` : what);
    if (!values['dry-run']) act();
  }
  if (!values['dry-run'])
    say(`done; to publish it: git push origin HEAD v${version}, and the files in ${relative(root, folder)}`);
}

/** The new texts of the files that a release changes, by name. */
function prepareFiles(version: string, date: string): Record<string, string> {
  const read = (name: string) => readFileSync(join(root, name), 'utf8');
  const current = (JSON.parse(read('package.json')) as { version: string }).version;
  if (!isVersion(version)) throw new Error(`"${version}" is no version; write it as 1.2.3 or 1.2.3-rc.1`);
  if (!isNewer(version, current)) throw new Error(`${version} is not newer than ${current}, which package.json has`);
  return {
    'CHANGELOG.md': releaseChanges(read('CHANGELOG.md'), version, date),
    'package.json': setVersion(read('package.json'), version),
    'package-lock.json': setVersion(read('package-lock.json'), version),
  };
}

function refuseWhatIsNotReady(version: string, folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new Error(`${folder} is not empty; name another --folder`);
  const changed = git('status', '--porcelain').trimEnd();
  if (changed !== '') throw new Error(`commit or put away first what is not committed:\n${changed}`);
  if (git('tag', '--list', `v${version}`) !== '') throw new Error(`there is a tag v${version} already`);
}

/** A release that fails its checks is none: its files are as they were. */
function check(names: readonly string[]): void {
  const { status } = spawnSync(join(root, 'scripts/test'), ['ci'], { stdio: 'inherit' });
  if (status === 0) return;
  git('checkout', '--', ...names);
  throw new Error('scripts/test ci failed; nothing was committed');
}

/** The packages carry the time of the commit, as in any other build of it. */
function build(folder: string, kinds: readonly string[]): void {
  const { SOURCE_DATE_EPOCH: _, ...environment } = process.env;
  const argv = ['--folder', folder, ...kinds];
  const { status } = spawnSync(join(root, 'scripts/package'), argv, { stdio: 'inherit', env: environment });
  if (status !== 0) throw new Error('scripts/package failed; commit and tag are there, and it can be run again');
}

/** As sha256sum writes and checks it. */
function writeSums(folder: string): void {
  const sum = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
  const lines = readdirSync(folder)
    .sort()
    .map((name) => `${sum(name)}  ${name}\n`);
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}

function git(...args: readonly string[]): string {
  return command(['git', '-C', root, ...args]);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

try {
  release(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`release: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
