import { exitCodes } from '../../src/cli/exit-code.ts';
import { type Flag, mayBeOn } from '../../src/cli/input/flags.ts';
import { variableOf } from '../../src/cli/input/input.ts';
import { type Command, summarize } from '../../src/cli/parse/command.ts';
import { catalogue } from '../../src/core/problems/problem.ts';
import { exitMeanings, files, variables } from './facts.ts';
import { bold, entry, italic, plain, type Roff, reference, section, typed } from './roff.ts';

/** The build that the pages belong to. */
export interface Edition {
  readonly version: string;
  /** `2030-01-31`. */
  readonly date: string;
}

const summary = 'a WireGuard connector for private networks';

/** The pages of section 1 by their file names: one of the program, and one a command. */
export function manualPages(commands: readonly Command[], edition: Edition): ReadonlyMap<string, string> {
  const pages = new Map([['cpn', describeProgram(commands)], ...commands.map(describeCommand)]);
  const lines = ([page, roff]: [string, Roff]): [string, string] => {
    const title = `.TH ${page.toUpperCase().replaceAll('-', '\\-')} 1 "${edition.date}" "cpn ${edition.version}" "User Commands"`;
    return [`${page}.1`, `${[title, ...roff].join('\n')}\n`];
  };
  return new Map([...pages].map(lines));
}

const pageOf = (name: string): string => `cpn-${name.replaceAll(' ', '-')}`;

function describeProgram(commands: readonly Command[]): Roff {
  return [
    ...section('name', `cpn \\- ${summary}`),
    ...section('synopsis', `${bold('cpn')} ${italic('command')} [${italic('argument')}] [${italic('flags')}]`),
    ...section(
      'description',
      plain('Joins this host to a private network over WireGuard and reconciles it, with a plain wg-quick file as'),
      plain('the stored configuration. Includes an embedded control plane.'),
      '.PP',
      `${bold('cpn --help')} lists the commands, ${bold('cpn --version')} shows the version.`,
    ),
    ...section(
      'commands',
      ...commands.flatMap((each) => entry(reference(pageOf(each.name)), plain(`${each.summary}.`))),
    ),
    ...section(
      'exit status',
      ...Object.entries(exitMeanings).flatMap(([name, meaning]) =>
        entry(bold(String(exitCodes[name as keyof typeof exitCodes])), plain(meaning)),
      ),
    ),
    ...section(
      'diagnostics',
      plain('Codes of problems and notes, in the JSON of cpn status and in the log of the daemon.'),
      ...Object.entries(catalogue).flatMap(([code, { title }]) => entry(bold(code), plain(`${sentence(title)}.`))),
    ),
    ...section(
      'environment',
      plain("Each flag may also be given as a variable; its command's page names it."),
      ...Object.entries(variables).flatMap(([name, text]) => entry(bold(name), plain(text))),
    ),
    ...section('files', ...Object.entries(files).flatMap(([path, text]) => entry(italic(path), plain(text)))),
    ...section('see also', `${reference('wg', 8)}, ${reference('wg-quick', 8)}, ${reference('ip', 8)}`),
  ];
}

function describeCommand(command: Command): [string, Roff] {
  const { name, argument, flags, examples } = command;
  const page = pageOf(name);
  const usage = [bold(`cpn ${name}`), ...(argument ? [shape(argument.usage)] : []), `[${italic('flags')}]`];
  const roff = [
    ...section('name', `${plain(page)} \\- ${plain(command.summary)}`),
    ...section('synopsis', usage.join(' ')),
    ...section(
      'description',
      plain(`${command.summary}.`),
      ...(argument ? ['.PP', `${shape(argument.usage)}: ${plain(summarize(argument))}.`] : []),
    ),
    ...section(
      'options',
      ...Object.entries(flags).flatMap(([flag, facts]) => describeFlag(flag, facts)),
      ...entry(bold('--help'), 'Show help.'),
    ),
    ...(examples.length > 0 ? section('examples', ...typed(examples)) : []),
    ...section('exit status', `See ${reference('cpn')}.`),
    ...section('see also', reference('cpn')),
  ];
  return [page, roff];
}

/** `[network]` stays in its brackets; placeholders are in italics. */
function shape(usage: string): string {
  return usage.replaceAll(/(\[?)<?([a-z-]+)>?(\]?)/g, (_, open, word, close) => `${open}${italic(word)}${close}`);
}

function describeFlag(name: string, flag: Flag): string[] {
  const { kind, value, summary, byDefault } = flag;
  const term = kind === 'switch' ? bold(`--${name}`) : `${bold(`--${name}`)} ${italic(value ?? 'TEXT')}`;
  const asked = mayBeOn(flag) ? `${term}, ${bold(`--no-${name}`)}` : term;
  const more = [
    `${sentence(summary)}.`,
    ...(byDefault === undefined ? [] : [`Default: ${byDefault}.`]),
    ...(kind === 'list' ? ['Repeatable.'] : []),
    `Variable: ${variableOf(name)}.`,
  ];
  return entry(asked, ...more.map(plain));
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
