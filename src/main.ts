import { writeFileSync } from 'node:fs';
import { exitCodes } from './cli/exit-code.ts';
import { note, printError } from './cli/output/output.ts';
import { findLostOutput, watchOutput } from './cli/output/terminal/stdout.ts';
import { runProgram } from './cli/program.ts';

export { runProgram };

/** Runs the command that the process was started with, and ends the process. */
export function main(): void {
  watchOutput();
  leaveMemoryOutOfCoreDumps();
  // Of a process that ends before its command does.
  process.exitCode = exitCodes.failed;
  void runProgram(process.argv.slice(2), process.env).then((exitCode) => {
    // Without the exit, a resolver that does not answer would hold the process open long after its
    // work is done; without the wait, a pipe that is read slowly would lose what it could not take
    // at once. A failed write is an event some ticks after its callback.
    process.stdout.write('', () => setImmediate(() => process.exit(judgeOutput(exitCode))));
  });
}

/** A result that did not arrive is a failure, also with exit code 0. */
function judgeOutput(exitCode: number): number {
  const lost = findLostOutput();
  if (lost === null) return exitCode;
  printError(lost);
  if (exitCode === exitCodes.done) note('the command succeeded; only its output is lost');
  return exitCodes.failed;
}

/**
 * Keeps the memory of this process, and of what it starts, out of core dumps: they would hold the
 * keys and tokens that it works with (core(5), coredump_filter). The kernel may still write a file
 * with registers and the list of what was mapped. Systems without such a filter are left as they
 * are.
 */
function leaveMemoryOutOfCoreDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0');
  } catch {
    // No such file: another system, or a /proc that may not be written.
  }
}
