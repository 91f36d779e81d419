import type { Check } from './check.ts';
import type { Part } from './part.ts';

/** What one call of `scripts/test` runs. */
export interface Plan {
  readonly checks: readonly Check[];
  /** One after the other, also after a failure. */
  readonly parts: readonly Part[];
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

/** Reads the words of a command line; USAGE in scripts/run-tests.ts lists them. */
export function planRun([mode, ...words]: readonly string[]): Plan {
  // An emulated machine takes both cores, so that its tests are a part of their own.
  const withoutMachine: Part = { projects: ['!vm'], words };
  const machine: Part = { projects: ['vm'], words };
  switch (mode) {
    case undefined:
      return { checks: [...CHECKS, BUILD], parts: [withoutMachine] };
    case 'quick':
      return { checks: CHECKS, parts: [{ projects: ['unit'], words }] };
    case 'vm':
      return { checks: [BUILD], parts: [machine] };
    case 'ci':
      return { checks: [...CHECKS, BUILD], parts: [withoutMachine, machine], mostUnsteady: 2 };
    case 'coverage': {
      const inProcess: Part = { projects: ['unit', 'fuzz', 'sqlite'], words, measuresCoverage: true };
      return { checks: [BUILD], parts: [inProcess] };
    }
    default:
      return { checks: [BUILD], parts: [{ projects: [], words: [mode, ...words] }] };
  }
}
