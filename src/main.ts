import { leaveMemoryOutOfCoreDumps } from './cli/core-dump.ts';
import { runProgram } from './cli/program.ts';

export { runProgram };

/** Runs the command that the process was started with, and ends the process. */
export function main(): void {
  // A reader that went away, such as `head`, wants no more.
  process.stdout.on('error', () => {});
  leaveMemoryOutOfCoreDumps();
  void runProgram(process.argv.slice(2), process.env).then((exitCode) => {
    // Without the exit, a resolver that does not answer would hold the process open long after its work is done; without the wait, a
    // pipe that is read slowly would lose what it could not take at once.
    process.stdout.write('', () => process.exit(exitCode));
  });
}
