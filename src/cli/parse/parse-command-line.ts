import yargs, { type Argv } from 'yargs';
import { WrongUsage } from '../../core/errors/index.ts';
import { version } from '../../core/util/version.ts';
import { type Flag, mayBeOn, readSwitch } from '../input/flags.ts';
import { helpColumns } from '../output/start-screen.ts';
import { type Command, groups } from './command.ts';
import { explainMistake, findCommand, refuseUnknownCommand } from './mistakes.ts';

/** Parses a command line and runs its command, or prints the requested help. @throws WrongUsage */
export async function parseCommandLine(
  argv: readonly string[],
  commands: readonly Command[],
  perform: PerformGiven,
): Promise<void> {
  refuseUnknownCommand(argv, commands);
  const performGiven: PerformGiven = (command, values) => perform(command, restoreDashes(values));
  const program = describeProgram(argv, commands, performGiven);
  const words = resolveSwitches(argv, findCommand(argv, commands));
  await program.parseAsync(words.map((word) => (word === '-' ? dash : word)));
}

/** Replaces the value of a switch by the form without one: yargs reads all but `true` as no. */
function resolveSwitches(argv: readonly string[], command: Command | undefined): readonly string[] {
  return argv.map((word) => {
    const [, name = '', value = ''] = /^--([^=]+)=(.*)$/s.exec(word) ?? [];
    if (command?.flags[name]?.kind === 'switch') return readSwitch(`--${name}`, value) ? `--${name}` : `--no-${name}`;
    const isOff = name.startsWith('no-') && command?.flags[name.slice(3)]?.kind === 'switch';
    if (isOff) throw new WrongUsage(`--${name} takes no value`);
    return word;
  });
}

type PerformGiven = (command: Command, given: Readonly<Record<string, unknown>>) => Promise<void>;

/** Replaces a lone `-` during parsing, because yargs reads it as an empty text. */
const dash = '\0-';

function restoreDashes(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value === dash ? '-' : value]));
}

function describeProgram(argv: readonly string[], commands: readonly Command[], perform: PerformGiven): Argv {
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
    .wrap(helpColumns())
    .strict()
    .demandCommand(1, 'a command is missing; "cpn --help" lists them')
    .exitProcess(false)
    .fail((message, error) => {
      // yargs reports its own refusals as an error or as a message.
      if (error && error.name !== 'YError') throw error;
      throw message.includes('--help') ? new WrongUsage(message) : explainMistake(message, argv, commands);
    });
  layOutHelpOnRequest(program);
  for (const command of commands.filter(({ name }) => !name.includes(' '))) describeCommand(program, command, perform);
  for (const [group, summary] of Object.entries(groups)) {
    program.command(group, summary, (member) => {
      const members = commands.filter(({ name }) => name.startsWith(`${group} `));
      for (const command of members) describeCommand(member, command, perform);
      return member.demandCommand(1, `a subcommand is missing; "cpn ${group} --help" lists them`).strict();
    });
  }
  return program;
}

/** Without this, yargs lays out the help of each command that it runs. */
function layOutHelpOnRequest(program: Argv): void {
  const { getUsageInstance } = (program as Argv & Internals).getInternalMethods();
  getUsageInstance().cacheHelpMessage = () => {};
}

/** What yargs exports for its own parts. */
interface Internals {
  getInternalMethods(): { getUsageInstance(): { cacheHelpMessage(): void } };
}

function describeCommand(program: Argv, command: Command, perform: PerformGiven): void {
  const word = command.name.split(' ').at(-1) ?? command.name;
  const { argument } = command;
  program.command(
    argument ? `${word} ${argument.usage}` : word,
    command.summary,
    (described) => {
      for (const [name, flag] of Object.entries(command.flags)) described.option(name, describeFlag(name, flag));
      for (const name of argument?.usage.match(/[a-z]+/g) ?? []) {
        const summary = argument?.summary;
        const describe = typeof summary === 'object' ? summary[name] : summary;
        described.positional(name, { type: 'string', ...(describe !== undefined && { describe }) });
      }
      for (const example of command.examples) described.example(example, '');
      return described.strict();
    },
    (given) => perform(command, given),
  );
}

function describeFlag(name: string, flag: Flag) {
  const { kind, summary, value, byDefault } = flag;
  const more = kind === 'list' ? '; repeatable' : mayBeOn(flag) ? `; --no-${name} turns it off` : '';
  return {
    type: kind === 'switch' ? ('boolean' as const) : ('string' as const),
    describe: `${value ? `${value}: ` : ''}${summary}${more}`,
    requiresArg: kind !== 'switch',
    ...(byDefault !== undefined && { defaultDescription: byDefault }),
  };
}
