import { version } from './cli/version.ts';

/** Asked for its version alone, the program loads nothing else: it costs what Node costs. */
async function main(argv: readonly string[]): Promise<number> {
  if (argv.length === 1 && argv[0] === '--version') {
    process.stdout.write(`${version}\n`);
    return 0;
  }
  const { runProgram } = await import('./cli/program.ts');
  return runProgram(argv, process.env);
}

// A resolver that does not answer would hold the process open long after its work is done.
process.exit(await main(process.argv.slice(2)));
