import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { run } from '../lab/run.ts';

const root = join(import.meta.dirname, '../..');
const heading = "import { existsSync, writeFileSync } from 'node:fs';\nimport { expect, test } from 'vitest';\n";
const good = `${heading}test('is well', () => {});\n`;
const bad = `${heading}test('is ill', () => expect('fever').toBe('health'));\n`;
const unsteady = `${heading}test('is well later', () => {
  const known = existsSync('met');
  writeFileSync('met', '');
  expect(known).toBe(true);
});\n`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-run-tests-'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function runTests(files: Record<string, string>) {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.test.mjs`), text);
  const { stdout } = await run(['env', '-C', folder, process.execPath, join(root, 'scripts/run-tests.ts'), 'counts'], {
    env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` },
    timeoutMs: 60_000,
  });
  return { counts: readFileSync(join(folder, 'counts'), 'utf8'), stdout };
}

test('what fails only once is counted as passed, and named', async () => {
  const { counts, stdout } = await runTests({ good, unsteady });
  expect(counts).toBe('2 0 0\n');
  expect(stdout).toMatch(/failed at first:\n {2}unsteady\.test\.mjs: is well later\n/);
  expect(stdout).not.toContain('\nfailed:');
});

test('what fails again has failed, and its name and trouble come last', async () => {
  const { counts, stdout } = await runTests({ good, bad, broken: 'not a test at all' });
  expect(counts).toBe('1 2 0\n');
  const [, last = ''] = stdout.split('\nfailed:\n');
  expect(last).toMatch(/bad\.test\.mjs: is ill\n.*fever/);
  expect(last).toContain('broken.test.mjs: could not be run');
});

test('what fails in many files at once is not tried again', async () => {
  const many = Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`bad-${index}`, bad]));
  const { counts, stdout } = await runTests(many);
  expect(counts).toBe('0 7 0\n');
  expect(stdout).not.toContain('a second time');
});
