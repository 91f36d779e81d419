import { runProgram } from './cli/program.ts';

// A resolver that does not answer would hold the process open long after its work is done.
process.exit(await runProgram(process.argv.slice(2), process.env));
