import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkImports, checkSizes } from '../../scripts/check-imports.ts';
import { run } from '../lab/run.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-imports-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A source tree with this one file. */
function tree(name: string, file: string, text: string): string {
  const root = join(folder, name.replace(/\W/g, '-'));
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
  return root;
}

test.each([
  ['core that reads files', 'src/core/net/a.ts', "import { readFileSync } from 'node:fs';", 'node:fs'],
  ['core that hashes', 'src/core/net/a.ts', "import { createHash } from 'node:crypto';", 'node:crypto'],
  ['core that looks up', 'src/core/net/a.ts', "import type { Tools } from '../../app/tools.ts';", 'src/app/tools.ts'],
  ['a contract that knows more', 'src/contract/a.ts', "import { x } from '../core/cidr.ts';", 'src/core/cidr.ts'],
  ['a use case that takes an adapter', 'src/app/a.ts', "import { x } from '../store/store.ts';", 'src/store/store.ts'],
  ['a use case that takes it lazily', 'src/app/a.ts', "await import('../host/run.ts')", 'src/host/run.ts'],
  [
    'a use case that imports a platform',
    'src/app/a.ts',
    "import type { x } from '../host/linux/x.ts';",
    'src/host/linux/x.ts',
  ],
  ['a use case that passes on', 'src/app/a.ts', "export { x } from '../store/store.ts';", 'src/store/store.ts'],
  ['a command that makes an adapter', 'src/cli/commands/a.ts', "import('../../host/run.ts')", 'src/host/run.ts'],
  [
    'an eager control plane',
    'src/cli/commands/control-plane.ts',
    "import '../../control-plane/a.ts';",
    'src/control-plane/a.ts',
  ],
  ['a second spawner', 'src/host/linux/a.ts', "import { spawn } from 'node:child_process';", 'node:child_process'],
  ['execa elsewhere', 'src/app/a.ts', "const { execa } = await import('execa');", 'execa'],
  [
    'a room above',
    'src/core/net/a.ts',
    "import type { plan } from '../reconcile/plan.ts';",
    'src/core/reconcile/plan.ts',
  ],
  ['undici elsewhere', 'src/control-plane/a.ts', "import {\n  request,\n} from 'undici';", 'undici'],
  ['tweetnacl elsewhere', 'src/api/a.ts', 'import nacl from "tweetnacl";', 'tweetnacl'],
  ['SQL elsewhere', 'src/store/store.ts', "import { DatabaseSync } from 'node:sqlite';", 'node:sqlite'],
  ['an adapter that knows another', 'src/api/a.ts', "import { x } from '../store/store.ts';", 'src/store/store.ts'],
  ['a computed import', 'src/cli/a.ts', 'await import(name)', '(computed)'],
  ['main that skips a floor', 'src/main.ts', "import { join } from './app/join.ts';", 'src/app/join.ts'],
])('refuses %s', (name, file, text, target) => {
  const [line, ...others] = checkImports(tree(name, file, `// first\n${text}\n`));
  expect(line).toMatch(new RegExp(`^${file}:\\d+: \\S+ may not import ${target.replace(/[().]/g, '\\$&')}`));
  expect(others).toEqual([]);
});

test('refuses a place that it has no rule for', () => {
  expect(checkImports(tree('unknown', 'src/misc/a.ts', ''))).toEqual([
    expect.stringContaining('no rule for this place'),
  ]);
});

test('allows what the table has', () => {
  const texts = {
    'src/app/a.ts':
      "import type { Store } from '../store/store.ts';\nimport { Cidr } from '../core/cidr.ts';\nimport './b.ts';",
    'src/cli/commands/control-plane.ts': "const { serve } = await import('../../control-plane/serve.ts');",
    'src/control-plane/store/migrations/a.ts':
      "import { Migrator } from 'kysely/migration';\nimport { sleep } from 'node:timers/promises';",
  };
  for (const [file, text] of Object.entries(texts)) expect(checkImports(tree('allowed', file, text))).toEqual([]);
});

test('refuses a cycle, of types too, and names it once', () => {
  const root = tree('cycle', 'src/core/util/a.ts', "import { b } from './b.ts';");
  writeFileSync(join(root, 'src/core/util/b.ts'), "import type { C } from './c.ts';");
  writeFileSync(join(root, 'src/core/util/c.ts'), "export { a } from './a.ts';");
  expect(checkImports(root)).toEqual([
    'src/core/util/a.ts → src/core/util/b.ts → src/core/util/c.ts → src/core/util/a.ts: a cycle',
  ]);
});

/** A source tree with these numbers of files by folder, each of so many lines. */
function treeOf(name: string, counts: Readonly<Record<string, number>>, lines: number): string {
  const root = join(folder, name);
  for (const [place, count] of Object.entries(counts)) {
    mkdirSync(join(root, place), { recursive: true });
    for (let at = 0; at < count; at += 1) writeFileSync(join(root, place, `f${at}.ts`), '//\n'.repeat(lines));
  }
  return root;
}

test('refuses a folder of more than 20 files, but for the table of commands', () => {
  const allowed = { 'src/app': 20, 'src/app/run': 20, 'src/cli/commands': 21 };
  expect(checkSizes(treeOf('folders', allowed, 31))).toEqual([]);
  expect(checkSizes(treeOf('folders', { 'src/app/run': 21, 'src/cli/commands/parts': 21 }, 31))).toEqual([
    'src/app/run: has 21 files, at most 20; divide it by subject',
    'src/cli/commands/parts: has 21 files, at most 20; divide it by subject',
  ]);
});

test('refuses more than 40 files of up to 30 lines, and names them', () => {
  const places = { 'src/app': 20, 'src/core/net': 20 };
  expect(checkSizes(treeOf('short', places, 30))).toEqual([]);
  expect(checkSizes(treeOf('long', { ...places, 'src/cli': 1 }, 31))).toEqual([]);
  expect(checkSizes(treeOf('short', { 'src/cli': 1 }, 30))).toEqual([
    expect.stringMatching(
      /^src: has 41 files of up to 30 lines, at most 40; merge .*: src\/app\/f0\.ts, .*src\/cli\/f0\.ts/,
    ),
  ]);
});

test('fails as a command', async () => {
  const script = join(import.meta.dirname, '..', '..', 'scripts', 'check-imports.ts');
  const root = tree('command', 'src/core/net/a.ts', "import { x } from '../../host/host.ts';");
  const { stdout, exitCode } = await run([process.execPath, script, root], { allowFailure: true });
  expect(exitCode).toBe(1);
  expect(stdout).toContain('src/core/net/a.ts:1: src/core/net/ may not import src/host/host.ts');
});
