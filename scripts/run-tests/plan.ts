import type { Check } from './check.ts';
import type { Part } from './part.ts';

/** What one call of `scripts/test` runs. */
export interface Plan {
  /** What tests run, made before them; absent where they run the sources alone. */
  readonly build?: Check;
  /** They run while the tests do. */
  readonly checks: readonly Check[];
  /** One list after the other, also after a failure; the parts of a list run side by side. */
  readonly parts: readonly (readonly Part[])[];
  /** The run fails with more unsteady files than this; absent where none fails it. */
  readonly mostUnsteady?: number;
}

const CHECKS: readonly Check[] = [
  { name: 'types', argv: ['tsc', '--noEmit'] },
  { name: 'types of the console', argv: ['tsc', '--noEmit', '--project', 'src/console'] },
  { name: 'lint and format', argv: ['biome', 'check', '--error-on-warnings'] },
  { name: 'import directions', argv: ['node', 'scripts/check-imports.ts'] },
  { name: 'words', argv: ['node', 'scripts/check-words.ts'] },
  { name: 'unused code', argv: ['knip'] },
];
const BUILD: Check = { name: 'build', argv: ['node', 'scripts/build.ts'] };

/** Tests within a process keep a core busy: more workers only load the same modules more often. */
const IN_PROCESS = { projects: ['unit', 'sqlite', 'fuzz'], workers: 3 };

/** Reads the words of a command line; USAGE in scripts/run-tests.ts lists them. */
export function planRun([mode, ...words]: readonly string[]): Plan {
  const withProcesses: Part = { projects: ['programs', 'lab', 'faults', 'browser', 'postgres'], words };
  const inProcess: Part = { ...IN_PROCESS, words };
  const machine: Part = { projects: ['vm'], words };
  switch (mode) {
    case undefined:
      return { build: BUILD, checks: CHECKS, parts: [[withProcesses], [inProcess]] };
    case 'quick':
      return { checks: CHECKS, parts: [[{ ...inProcess, projects: ['unit'] }]] };
    case 'vm':
      return { build: BUILD, checks: [], parts: [[machine]] };
    case 'ci':
      // An emulated machine takes one core and a half: what runs next to it has no deadline.
      return {
        build: BUILD,
        checks: CHECKS,
        parts: [[withProcesses], [machine, inProcess]],
        mostUnsteady: 2,
      };
    case 'coverage':
      return { build: BUILD, checks: [], parts: [[{ ...inProcess, measuresCoverage: true }]] };
    default:
      return { build: BUILD, checks: [], parts: [[{ projects: [], words: [mode, ...words] }]] };
  }
}
