import { maskTokens } from '../../core/crypto/secret.ts';
import { quote, WrongUsage } from '../../core/errors/index.ts';
import { type Command, groups, summarize } from './command.ts';
import { leadingWords } from './commands.ts';
import { findMeant, findSimilar } from './suggest.ts';

/** Throws if the first words of a command line name no command. @throws WrongUsage */
export function refuseUnknownCommand(argv: readonly string[], commands: readonly Command[]): void {
  const [first, second] = leadingWords(argv);
  if (first === undefined || findCommand(argv, commands) !== undefined) return;
  const isGroup = Object.hasOwn(groups, first);
  if (isGroup && second === undefined) return;
  const meant = findMeant(second === undefined ? [first] : [first, second], commands);
  const list = `"cpn ${isGroup ? `${first} ` : ''}--help" lists them`;
  // The typed words may contain a key.
  const words = maskTokens(isGroup ? `${first} ${second}` : first);
  throw new WrongUsage(
    `there is no command ${quote(words)}; ${meant.length === 0 ? list : `did you mean ${oneOf(meant)}?`}`,
  );
}

/** The command that a command line names, or undefined. */
export function findCommand(argv: readonly string[], commands: readonly Command[]): Command | undefined {
  const [first, second] = leadingWords(argv);
  return commands.find(({ name }) => name === first || name === `${first} ${second}`);
}

/** Explains an error of yargs about a command's flags and arguments, with what to type instead. */
export function explainMistake(message: string, argv: readonly string[], commands: readonly Command[]): WrongUsage {
  const said = maskTokens(message.replaceAll('\n', '; '));
  const command = findCommand(argv, commands);
  const title = command ? `cpn ${command.name}` : 'cpn';
  const [, valueless] = /^Not enough arguments following: (.*)$/.exec(said) ?? [];
  if (valueless !== undefined) {
    const value = command?.flags[valueless]?.value ?? 'VALUE';
    return new WrongUsage(`--${valueless} needs a value: --${valueless} ${value}`);
  }
  if (said.startsWith('Not enough non-option') && command?.argument) {
    const { usage } = command.argument;
    const summary = summarize(command.argument);
    return new WrongUsage(`${title} needs an argument: ${usage} (${summary}); example: ${command.examples[0]}`);
  }
  const [, unknown] = /^Unknown arguments?: (.*)$/.exec(said) ?? [];
  if (unknown !== undefined) return new WrongUsage(explainUnknown(unknown.split(', '), argv, title, command));
  return new WrongUsage(`${said}; "${title} --help" lists commands and flags`);
}

function explainUnknown(
  names: readonly string[],
  argv: readonly string[],
  title: string,
  command: Command | undefined,
): string {
  const typed = argv.map((word) => /^--?([^=]+)/.exec(word)?.[1]).filter((name) => name !== undefined);
  // For a flag with dashes, yargs also names its camel-cased form.
  const flag = typed.find((name) => [name, name.replace(/^no-/, '')].some((each) => names.includes(each)));
  if (flag === undefined) {
    const valued = explainValue(names[0], argv, command);
    if (valued !== null) return valued;
    const usage = command?.argument
      ? `usage: ${title} ${command.argument.usage}`
      : `example: ${command?.examples[0] ?? title}`;
    return `unexpected argument ${quote(names[0])}; ${usage}`;
  }
  const known = ['help', 'version', ...Object.keys(command?.flags ?? {})];
  const similar = findSimilar(flag.replace(/^no-/, ''), known);
  const remedy = similar === null ? `"${title} --help" lists its flags` : `did you mean --${similar}?`;
  return `${title} has no flag ${flag.length === 1 ? '-' : '--'}${maskTokens(flag)}; ${remedy}`;
}

/** Explains a value after a switch, such as `--tags ops` in place of `--tag ops`. */
function explainValue(value: string | undefined, argv: readonly string[], command: Command | undefined): string | null {
  const before = argv[argv.findIndex((word) => maskTokens(word) === value) - 1] ?? '';
  const name = before.replace(/^--/, '');
  if (name === before || command?.flags[name]?.kind !== 'switch') return null;
  const valued = Object.keys(command.flags).filter((each) => command.flags[each]?.kind !== 'switch');
  const similar = findSimilar(name, valued);
  const remedy = similar === null ? `leave out ${quote(value)}` : `did you mean --${similar}?`;
  return `--${name} takes no value; ${remedy}`;
}

function oneOf(names: readonly string[]): string {
  const quoted = names.map((name) => `"cpn ${name}"`);
  const last = quoted.pop();
  return quoted.length === 0 ? `${last}` : `${quoted.join(', ')} or ${last}`;
}
