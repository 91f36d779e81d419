import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

/** Where Stryker is installed, works and keeps its results. */
export const cache = join(root, '.cache/mutate');

/** The variable that names the file with the list of tests. */
export const TESTS_VARIABLE = 'CPN_MUTATE_TESTS';

/** Stryker's settings for these files. */
export function settingsOf(files: readonly string[]) {
  return {
    mutate: files,
    plugins: [join(cache, 'node_modules/@stryker-mutator/vitest-runner/dist/src/index.js')],
    testRunner: 'vitest',
    vitest: { configFile: 'scripts/run-mutate/vitest.config.ts', related: true },
    // More of them slow down what else a machine does.
    concurrency: 2,
    coverageAnalysis: 'perTest',
    ignoreStatic: true,
    incremental: true,
    incrementalFile: join(cache, 'results.json'),
    tempDirName: '.cache/mutate/work',
    ignorePatterns: ['/dist', '/dist-packages', '/coverage', '/.cache'],
    reporters: ['clear-text', 'progress-append-only'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportScoreTable: true },
    thresholds: { high: 100, low: 100, break: 100 },
    // In addition to one and a half times the seconds of its tests: a loaded machine ends no mutant
    // too early.
    timeoutMS: 20_000,
    // Stryker would rewrite it with the API of TypeScript 6, which TypeScript 7 does not have.
    tsconfigFile: 'none',
    disableTypeChecks: false,
    allowConsoleColors: false,
  };
}
