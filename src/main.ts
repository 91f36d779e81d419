import { leaveMemoryOutOfCoreDumps } from './cli/core-dump.ts';
import { version } from './cli/version.ts';

/** Asked for its version alone, the program loads nothing else: it costs what Node costs. */
async function main(argv: readonly string[]): Promise<number> {
  if (argv.length === 1 && argv[0] === '--version') {
    process.stdout.write(`${version}\n`);
    return 0;
  }
  leaveMemoryOutOfCoreDumps();
  const { runProgram } = await import('./cli/program.ts');
  return runProgram(argv, process.env);
}

// A reader that went away, such as `head`, wants no more.
process.stdout.on('error', () => {});
const exitCode = await main(process.argv.slice(2));
// Without the exit, a resolver that does not answer would hold the process open long after its work is done; without the wait, a
// pipe that is read slowly would lose what it could not take at once.
process.stdout.write('', () => process.exit(exitCode));
