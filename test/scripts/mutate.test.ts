import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { chooseFiles } from '../../scripts/run-mutate/choose-files.ts';
import { chooseTests } from '../../scripts/run-mutate/choose-tests.ts';
import { REPOSITORY } from '../lab/built-program.ts';
import { run } from '../lab/run.ts';

let root: string;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'cpn-mutate-'));
  await git('init', '-q', '-b', 'main');
  write('src/core/old.ts');
  write('src/core/gone.ts');
  await commit('one');
});
afterEach(() => rmSync(root, { recursive: true }));

const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.net', '-c', 'commit.gpgsign=false'];
const git = (...args: string[]) => run(['git', '-C', root, ...identity, ...args]);
async function commit(subject: string): Promise<void> {
  await git('add', '-A');
  await git('commit', '-q', '-m', subject);
}
function write(path: string, text = path): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

test.each([
  ['origin/main', ['update-ref', 'refs/remotes/origin/main', 'HEAD']],
  ['the last tag', ['tag', 'v1']],
])('the files are those of src that differ from %s, committed, changed or new', async (_, base) => {
  await git(...base);
  for (const path of ['src/core/committed.ts', 'src/console/page.tsx', 'test/a.test.ts', 'docs/a.md']) write(path);
  rmSync(join(root, 'src/core/gone.ts'));
  await commit('two');
  write('src/core/old.ts', 'changed');
  write('src/cli/new.ts');
  write('src/types.d.ts');
  expect(chooseFiles(root, [])).toEqual([
    ...['src/cli/new.ts', 'src/console/page.tsx', 'src/core/committed.ts', 'src/core/old.ts'],
  ]);
});

test('paths narrow them to files and folders, and a path that does not exist is an error', () => {
  write('src/core/net/a.ts');
  expect(chooseFiles(root, ['src/core/net', 'src/core/old.ts'])).toEqual(['src/core/net/a.ts', 'src/core/old.ts']);
  expect(() => chooseFiles(root, ['src/nowhere'])).toThrow('there is no file or folder src/nowhere');
  expect(() => chooseFiles(root, [])).toThrow('neither origin/main nor a tag');
});

test('the tests are those of the folder that mirrors the file, or of the nearest above it', () => {
  const foldersOf = (file: string) => [...new Set(chooseTests(REPOSITORY, [file]).map((test) => dirname(test)))];
  expect(foldersOf('src/core/routing/guard.ts')).toEqual(['test/core/routing', 'test/core/routing/topology']);
  expect(foldersOf('src/core/forward/foreign/chain.ts')[0]).toMatch(/^test\/core\/forward/);
  const served = chooseTests(REPOSITORY, ['src/contract/peer.ts']);
  expect(served.filter((test) => !test.startsWith('test/control-plane/'))).toEqual([]);
  // It needs a server.
  expect(served).not.toContain('test/control-plane/store/postgres/crash.test.ts');
  // Stryker runs tests in threads.
  const tests = chooseTests(REPOSITORY, ['src/cli/daemon/metrics/publish.ts']);
  const texts = tests.map((test) => readFileSync(join(REPOSITORY, test), 'utf8'));
  expect(texts.filter((text) => /process\.umask\(/.test(text))).toEqual([]);
});

test('a dry run lists what would run, and the tool is pinned, without a package that installs a program', async () => {
  const script = join(REPOSITORY, 'scripts/mutate.ts');
  const mutate = (...args: string[]) =>
    run(['env', '-C', REPOSITORY, process.execPath, script, ...args], { allowFailure: true });
  const { stdout, exitCode } = await mutate('--dry-run', 'src/core/routing/guard.ts');
  expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^src\/core\/routing\/guard\.ts\n\d\d test files\n$/)]);
  expect(await mutate('--dry-run', 'src/nowhere')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('mutate:'),
  });
  const lock = JSON.parse(readFileSync(join(REPOSITORY, 'scripts/run-mutate/package-lock.json'), 'utf8'));
  const packages = Object.entries<{ integrity?: string; hasInstallScript?: true }>(lock.packages).slice(1);
  expect(packages.length).toBeGreaterThan(100);
  expect(packages.filter(([, { integrity, hasInstallScript }]) => !integrity || hasInstallScript)).toEqual([]);
});
