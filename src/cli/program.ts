import { exitCodeOf, exitCodes } from './exit-code.ts';
import { nameFlags } from './input/flags.ts';
import { Input } from './input/input.ts';
import { endStep, printError } from './output/output.ts';
import { showGroup, showHelp, showStart } from './output/start-screen.ts';
import { type Command, groups } from './parse/command.ts';
import { loadCommands, loadNamed } from './parse/commands.ts';

export async function runProgram(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  let exitCode: number = exitCodes.done;
  const perform: Perform = async (command, input) => {
    exitCode = await command.run(input).catch((error) => {
      throw nameFlags(error, command.flags);
    });
  };
  try {
    if (argv.length === 0) {
      await showStart(environment);
      return exitCodes.usage;
    }
    const [group = ''] = argv;
    if (argv.length === 1 && Object.hasOwn(groups, group)) {
      showGroup(group, await loadCommands());
    }
    await readCommandLine(argv, environment, perform);
    return exitCode;
  } catch (error) {
    printError(error);
    return exitCodeOf(error);
  } finally {
    endStep(exitCode === exitCodes.done ? 'done' : 'open');
  }
}

/** Treats `cpn help network create` and `cpn network help` like `--help`. */
function withHelpFlag(argv: readonly string[]): readonly string[] {
  const [first = '', second] = argv;
  if (first === 'help') return [...argv.slice(1), '--help'];
  return Object.hasOwn(groups, first) && second === 'help' ? [first, ...argv.slice(2), '--help'] : argv;
}

/** Parses a command line and runs its command, or prints the requested help. @throws WrongUsage */
export async function readCommandLine(
  given: readonly string[],
  environment: NodeJS.ProcessEnv,
  perform: Perform,
): Promise<void> {
  const argv = withHelpFlag(given);
  const commands = await loadNamed(argv);
  if (argv.length > 0 && argv.every((word) => word === '--help' || word === '-h')) {
    return showHelp(commands);
  }
  const performGiven = (command: Command, values: Readonly<Record<string, unknown>>) =>
    perform(command, new Input(values, command.flags, environment));
  const bare = commands.find(({ name, argument }) => name === argv.join(' ') && !argument?.usage.includes('<'));
  if (bare !== undefined) return performGiven(bare, {});
  // Skips yargs for a bare command name, because a daemon would hold its memory permanently.
  const { parseCommandLine: readLine } = await import('./parse/parse-command-line.ts');
  await readLine(argv, commands, performGiven);
}

type Perform = (command: Command, input: Input) => Promise<void>;
