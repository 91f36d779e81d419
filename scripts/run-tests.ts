/** Runs checks and tests; scripts/test calls it once the tools and packages are there. */
import { planRun } from './run-tests/plan.ts';
import { runPlan } from './run-tests/run-plan.ts';

const usage = `usage: scripts/test [quick | vm | coverage | ci] [WORD…]

  (nothing)  every check and test but those of the emulated machine
  quick      static checks and unit tests
  vm         the tests of the emulated machine
  coverage   the unit and in-process tests, with the coverage of each folder of src
  ci         every check and test; three files that pass only on their second run fail it too
  WORD       only test files whose path contains one of the words; alone, without the static checks
`;

const words = process.argv.slice(2);
if (words.includes('--help')) process.stdout.write(usage);
else if (words.some((word) => word.startsWith('-'))) {
  process.stderr.write(usage);
  process.exitCode = 2;
} else process.exitCode = await runPlan(planRun(words));
