import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import config from '../../vitest.config.ts';

interface Project {
  readonly test: { readonly name: string; readonly include: string[]; readonly exclude?: string[] };
}

/** Stryker runs tests in threads, where Node refuses these. */
const processWide = /\bprocess\.(?:umask|chdir|sete?[ug]id|initgroups)\(/;

/**
 * The test files of the folders that mirror those of the mutated files, of the projects that run in
 * one process.
 */
export function chooseTests(root: string, files: readonly string[]): string[] {
  const projects = (config.test?.projects ?? []) as readonly Project[];
  const tests = projects
    .filter(({ test }) => ['unit', 'sqlite'].includes(test.name))
    .flatMap(({ test }) => globSync(test.include, { cwd: root, exclude: test.exclude ?? [] }))
    .filter((file) => !processWide.test(readFileSync(join(root, file), 'utf8')));
  return [...new Set(files.flatMap((file) => findMirror(file, tests)))].toSorted();
}

/**
 * The tests in the mirror of a file's folder, or else of the nearest folder above it that has
 * tests.
 */
function findMirror(file: string, tests: readonly string[]): string[] {
  // The control plane validates and serializes with the contract, which has no tests of its own.
  let folder = dirname(file)
    .replace(/^src\b/, 'test')
    .replace(/^test\/contract\b/, 'test/control-plane');
  for (; folder !== 'test' && folder !== '.'; folder = dirname(folder)) {
    const found = tests.filter((test) => test.startsWith(`${folder}/`));
    if (found.length > 0) return found;
  }
  return [];
}
