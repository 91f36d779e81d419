import yargs, { type Argv } from 'yargs';
import { WrongUsage } from '../core/errors.ts';
import type { Command, Flag } from './command.ts';
import { commands } from './commands.ts';
import { exitCodeOf, exitCodes } from './exit-code.ts';
import { groups } from './groups.ts';
import { Input } from './input.ts';
import { explainMistake, refuseUnknownCommand } from './mistakes.ts';
import { endStep, printError } from './output.ts';
import { joinExample, showGroup, showStart } from './start-screen.ts';
import { version } from './version.ts';

/** Runs the command that `argv` names and returns the exit code. */
export async function runProgram(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  let exitCode: number = exitCodes.done;
  const perform: Perform = async (command, input) => {
    exitCode = await command.run(input);
  };
  try {
    if (argv.length === 0) {
      await showStart(environment);
      return exitCodes.usage;
    }
    const [group = ''] = argv;
    if (argv.length === 1 && Object.hasOwn(groups, group)) showGroup(group, commands);
    await readCommandLine(argv, environment, perform);
    return exitCode;
  } catch (error) {
    printError(error);
    return exitCodeOf(error);
  } finally {
    endStep(exitCode === exitCodes.done ? 'done' : 'open');
  }
}

/** `cpn help network create` and `cpn network help` ask for what `--help` does. */
function withHelpFlag(argv: readonly string[]): readonly string[] {
  const [first = '', second] = argv;
  if (first === 'help') return [...argv.slice(1), '--help'];
  return Object.hasOwn(groups, first) && second === 'help' ? [first, ...argv.slice(2), '--help'] : argv;
}

/** Reads a command line and has the command that it names performed, or prints the help that it asks for. @throws WrongUsage */
export async function readCommandLine(
  given: readonly string[],
  environment: NodeJS.ProcessEnv,
  perform: Perform,
): Promise<void> {
  const argv = withHelpFlag(given);
  refuseUnknownCommand(argv, commands);
  const performGiven: PerformGiven = (command, values) =>
    perform(command, new Input(restoreDashes(values), command.flags, environment));
  await describeProgram(argv, performGiven).parseAsync(argv.map((word) => (word === '-' ? dash : word)));
}

type Perform = (command: Command, input: Input) => Promise<void>;

/** Stands for a lone `-` while yargs reads, which makes an empty text of it. */
const dash = '\0-';

function restoreDashes(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value === dash ? '-' : value]));
}

type PerformGiven = (command: Command, given: Readonly<Record<string, unknown>>) => Promise<void>;

/** What `cpn --help` ends with. */
export const programExamples: readonly (readonly [string, string])[] = [
  [joinExample, 'join a network with the key in a file'],
  ['cpn status', 'how it is'],
  ['cpn help join', 'flags and examples of a command'],
];

function describeProgram(argv: readonly string[], perform: PerformGiven): Argv {
  const program = yargs()
    .scriptName('cpn')
    .usage('$0 <command>\n\nA WireGuard connector for private networks')
    .parserConfiguration({
      'duplicate-arguments-array': true,
      'parse-numbers': false,
      'parse-positional-numbers': false,
    })
    .locale('en')
    .alias('help', 'h')
    .version(version)
    .wrap(Math.min(110, process.stdout.columns ?? 110))
    .strict()
    .demandCommand(1, 'name a command; "cpn --help" lists them')
    .exitProcess(false)
    .fail((message, error) => {
      // What yargs itself refuses comes as an error or as a message.
      if (error && error.name !== 'YError') throw error;
      throw message.includes('--help') ? new WrongUsage(message) : explainMistake(message, argv, commands);
    });
  for (const [example, what] of programExamples) program.example(example, what);
  for (const command of commands.filter(({ name }) => !name.includes(' '))) describeCommand(program, command, perform);
  for (const [group, summary] of Object.entries(groups)) {
    program.command(group, summary, (member) => {
      const members = commands.filter(({ name }) => name.startsWith(`${group} `));
      for (const command of members) describeCommand(member, command, perform);
      return member.demandCommand(1, `name what to do; "cpn ${group} --help" lists it`).strict();
    });
  }
  return program;
}

function describeCommand(program: Argv, command: Command, perform: PerformGiven): void {
  const word = command.name.split(' ').at(-1) ?? command.name;
  const { argument } = command;
  program.command(
    argument ? `${word} ${argument.usage}` : word,
    command.summary,
    (described) => {
      for (const [name, flag] of Object.entries(command.flags)) described.option(name, describeFlag(flag));
      for (const name of argument?.usage.match(/[a-z]+/g) ?? []) {
        described.positional(name, { type: 'string', describe: argument?.summary });
      }
      for (const example of command.examples) described.example(example, '');
      return described.strict();
    },
    (given) => perform(command, given),
  );
}

function describeFlag({ kind, summary, value, byDefault }: Flag) {
  return {
    type: kind === 'switch' ? ('boolean' as const) : ('string' as const),
    describe: value ? `${value}: ${summary}` : summary,
    requiresArg: kind !== 'switch',
    ...(byDefault !== undefined && { defaultDescription: byDefault }),
  };
}
