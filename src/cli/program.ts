import yargs, { type Argv } from 'yargs';
import { quote, WrongUsage } from '../core/errors.ts';
import { maskTokens } from '../core/secret.ts';
import type { Command, Flag } from './command.ts';
import { commands } from './commands.ts';
import { exitCodeOf, exitCodes } from './exit-code.ts';
import { groups } from './groups.ts';
import { Input } from './input.ts';
import { printError } from './output.ts';
import { version } from './version.ts';

/** Runs the command that `argv` names and returns the exit code. */
export async function runProgram(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  let exitCode: number = exitCodes.done;
  const perform = async (command: Command, given: Readonly<Record<string, unknown>>) => {
    exitCode = await command.run(new Input(restoreDashes(given), command.flags, environment));
  };
  try {
    await describeProgram(argv, perform).parseAsync(argv.map((word) => (word === '-' ? dash : word)));
    return exitCode;
  } catch (error) {
    printError(error);
    return exitCodeOf(error);
  }
}

/** Stands for a lone `-` while yargs reads, which makes an empty text of it. */
const dash = '\0-';

function restoreDashes(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value === dash ? '-' : value]));
}

type Perform = (command: Command, given: Readonly<Record<string, unknown>>) => Promise<void>;

function describeProgram(argv: readonly string[], perform: Perform): Argv {
  const program = yargs()
    .scriptName('cpn')
    .usage('$0 <command>\n\nA WireGuard connector for private networks')
    .parserConfiguration({
      'duplicate-arguments-array': true,
      'parse-numbers': false,
      'parse-positional-numbers': false,
    })
    .locale('en')
    .version(version)
    .wrap(Math.min(110, process.stdout.columns ?? 110))
    .strict()
    .recommendCommands()
    .demandCommand(1, 'name a command; "cpn --help" lists them')
    .exitProcess(false)
    .fail((message, error) => {
      throw error ?? new WrongUsage(explain(message, argv));
    });
  for (const command of commands.filter(({ name }) => !name.includes(' '))) describeCommand(program, command, perform);
  for (const [group, summary] of Object.entries(groups)) {
    program.command(group, summary, (member) => {
      const members = commands.filter(({ name }) => name.startsWith(`${group} `));
      for (const command of members) describeCommand(member, command, perform);
      return member.demandCommand(1, `name what to do; "cpn ${group} --help" lists it`).recommendCommands().strict();
    });
  }
  return program;
}

function describeCommand(program: Argv, command: Command, perform: Perform): void {
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

/** yargs suggests a command without saying what was wrong with the one given. */
function explain(message: string, argv: readonly string[]): string {
  // What was typed may hold a key.
  const said = maskTokens(message.replaceAll('\n', '; '));
  const words = maskTokens(argv.filter((word) => !word.startsWith('-')).join(' '));
  if (said.includes('--help')) return said;
  if (said.startsWith('Not enough non-option'))
    return `the command lacks an argument; "cpn ${words} --help" shows which`;
  if (!said.startsWith('Did you mean')) return `${said}; "cpn --help" lists commands and flags`;
  return `there is no command ${quote(words)}; ${said.replace('Did', 'did')}`;
}
