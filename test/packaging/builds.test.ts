import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { architectures, readMachine } from '../../packaging/architecture.ts';
import { readHead } from '../../packaging/private-node.ts';
import { manifest } from '../../packaging/source.ts';
import { listUnits } from '../../packaging/tree.ts';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import { builtProgram, REPOSITORY } from '../lab/built-program.ts';
import { run } from '../lab/run.ts';

const commands = await loadCommands();

const { version } = manifest;
const own = process.arch === 'x64' ? 'amd64' : 'arm64';
const foreign = own === 'amd64' ? 'arm64' : 'amd64';
const pack = join(REPOSITORY, 'scripts/package');
/** Nothing is installed here: what packages are built with comes from scripts/setup. */
const env = { ...process.env, SOURCE_DATE_EPOCH: '1750000000', CPN_SETUP: 'check' };
/** Five packages are half a gigabyte to write and to read: a busy disk takes minutes. */
const patience = { timeoutMs: 900_000, env };
let folder: string;
let table: string;

beforeAll(async () => {
  await builtProgram();
  folder = mkdtempSync(join(tmpdir(), 'cpn-packages-'));
  table = (await run([pack, '--built', '--fast', '--folder', join(folder, 'out'), 'deb', 'rpm', 'npm'], patience))
    .stdout;
}, 920_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const built = (name: string) => join(folder, 'out', name);

/** Unpacks a package below a folder of its own, and returns that. */
async function unpack(name: string): Promise<string> {
  const tree = join(folder, `tree of ${name}`);
  if (existsSync(tree)) return tree;
  mkdirSync(tree);
  const way = name.endsWith('.rpm') ? 'rpm2cpio "$0" | cpio -idm --quiet' : 'dpkg-deb -x "$0" .';
  await run(['sh', '-c', `cd "$1" && ${way}`, built(name), tree], { timeoutMs: 60_000 });
  return tree;
}

describe('scripts/package', () => {
  it('prints size, sha256 and start time of each package, and lintian found no error', () => {
    const rows = table
      .trim()
      .split('\n')
      .slice(-6)
      .map((line) => line.split(/\s{2,}/));
    const names = rows.slice(1).map(([file]) => file);
    expect(rows[0]).toEqual(['file', 'size', 'sha256', 'start']);
    expect(names.sort()).toEqual(readdirSync(join(folder, 'out')).sort());
    for (const [, size, sha256] of rows.slice(1)) {
      expect([size, sha256]).toEqual([expect.stringMatching(/^[0-9.]+ MiB$/), expect.stringMatching(/^[0-9a-f]{64}$/)]);
    }
    expect(table).toMatch(new RegExp(`${own}\\.deb .* ms, [0-9.]+ x node -e 0`));
  });

  it('builds the same bytes again', async () => {
    const again = join(folder, 'again');
    const words = ['--arch', own, 'deb', 'rpm', 'npm'];
    await run([pack, '--built', '--fast', '--unchecked', '--folder', again, ...words], patience);
    const names = readdirSync(again);
    expect(names.length).toBe(3);
    for (const name of names) expect(readFileSync(join(again, name)).equals(readFileSync(built(name)))).toBe(true);
  }, 920_000);

  it('builds another version on request, as dpkg and rpm count it, and leaves dist alone', async () => {
    const other = join(folder, 'other');
    const before = statSync(join(REPOSITORY, 'dist/main.cjs')).mtimeMs;
    const words = ['--version', '9.1.0-rc.1', '--arch', own, 'deb'];
    await run([pack, '--fast', '--unchecked', '--folder', other, ...words], patience);
    const name = `cpn_9.1.0~rc.1_${own}.deb`;
    expect(readdirSync(other)).toEqual([name]);
    const printed = await run([
      'sh',
      '-c',
      'dpkg-deb -x "$0" "$1" && "$1/usr/bin/cpn" --version',
      join(other, name),
      join(other, 'tree'),
    ]);
    expect(printed.stdout).toBe('9.1.0-rc.1\n');
    expect(statSync(join(REPOSITORY, 'dist/main.cjs')).mtimeMs).toBe(before);
  }, 920_000);

  it('says which word it does not know', async () => {
    const { exitCode, stderr } = await run([pack, '--built', 'snap'], { ...patience, allowFailure: true });
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('"snap" is no package and no architecture')]);
  });
});

describe.each([
  [`cpn_${version}_${own}.deb`, own],
  [`cpn_${version}_${foreign}.deb`, foreign],
  [`cpn-${version}-1.${own === 'amd64' ? 'x86_64' : 'aarch64'}.rpm`, own],
  [`cpn-${version}-1.${own === 'amd64' ? 'aarch64' : 'x86_64'}.rpm`, foreign],
])('%s', (name, debian) => {
  it('carries the Node of its architecture', async () => {
    const node = join(await unpack(name), 'usr/lib/cpn/node');
    expect(readMachine(readHead(node))).toBe(architectures.find((each) => each.debian === debian)?.machine);
  }, 60_000);

  it('carries manual, completions and drop-ins', async () => {
    const tree = await unpack(name);
    expect(readdirSync(join(tree, 'usr/share/man/man1')).length).toBe(commands.length + 1);
    const zsh = name.endsWith('.deb') ? 'vendor-completions' : 'site-functions';
    for (const file of [
      'usr/bin/cpn',
      'usr/lib/systemd/network/10-cpn.network',
      'usr/lib/NetworkManager/conf.d/20-cpn.conf',
      'usr/lib/cpn/console/index.html',
      'usr/share/bash-completion/completions/cpn',
      'usr/share/cpn/monitoring/alerts.yml',
      'usr/share/cpn/monitoring/dashboard.json',
      'usr/share/doc/cpn/examples/join.conf',
      'usr/share/fish/vendor_completions.d/cpn.fish',
      `usr/share/zsh/${zsh}/_cpn`,
    ]) {
      expect([file, existsSync(join(tree, file))]).toEqual([file, true]);
    }
    for (const unit of listUnits()) expect(existsSync(join(tree, 'usr/lib/systemd/system', unit))).toBe(true);
  }, 60_000);
});

describe.each([`cpn_${version}_${own}.deb`, `cpn-${version}-1.${own === 'amd64' ? 'x86_64' : 'aarch64'}.rpm`])(
  '%s',
  (name) => {
    it('runs with no other Node, also through a link', async () => {
      const tree = await unpack(name);
      const link = join(folder, `link of ${name}`);
      symlinkSync(join(tree, 'usr/bin/cpn'), link);
      for (const program of [join(tree, 'usr/bin/cpn'), link]) {
        expect((await run([program, '--version'], { env: { PATH: '/nowhere' } })).stdout).toBe(`${version}\n`);
      }
    }, 60_000);
  },
);

describe('the npm package', () => {
  it('runs by npx in an empty folder', async () => {
    const empty = join(folder, 'empty');
    mkdirSync(empty);
    const npx = ['npx', '--yes', '--offline', '--omit=optional', `../out/cpn-connector-${version}.tgz`, '--version'];
    const env = {
      npm_config_cache: join(folder, 'npm-cache'),
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    };
    const { stdout } = await run(['sh', '-c', 'cd "$0" && exec "$@"', empty, ...npx], { env, timeoutMs: 50_000 });
    expect(stdout).toBe(`${version}\n`);
  });

  it('carries the program, its licences, manual and completions, and needs no other package', async () => {
    const tree = join(folder, 'npm');
    mkdirSync(tree);
    await run(['tar', '-xzf', built(`cpn-connector-${version}.tgz`), '-C', tree, '--strip-components=1']);
    expect(readdirSync(tree).sort()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'completions', 'dist', 'man', 'package.json'].sort(),
    );
    const facts = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8'));
    expect([facts.license, facts.dependencies, facts.scripts]).toEqual(['MIT', undefined, undefined]);
    expect(facts.man.length).toBe(commands.length + 1);
    expect(existsSync(join(tree, 'dist/console/index.html'))).toBe(true);
    const notice = readFileSync(join(tree, 'dist/NOTICE'), 'utf8');
    for (const name of ['zod', 'preact']) expect(notice).toMatch(new RegExp(`^${name} \\d`, 'm'));
  });
});

/** NetworkManager and systemd-networkd read both as they read any file of theirs: sections in brackets, a key a line. */
it('the drop-ins name our interfaces alone', () => {
  const read = (file: string) =>
    readFileSync(join(REPOSITORY, 'packaging', file), 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
  expect(read('networkd/10-cpn.network')).toEqual(['[Match]', 'Name=cpn*', '[Link]', 'Unmanaged=yes']);
  expect(read('network-manager/20-cpn.conf')).toEqual([
    '[device-cpn]',
    'match-device=interface-name:cpn*',
    'managed=0',
  ]);
});
