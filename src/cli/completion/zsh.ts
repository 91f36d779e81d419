import type { Command } from '../parse/command.ts';
import { type Offer, offerArguments, offerFlags } from './offer.ts';

/** Completion for zsh: a file `_cpn` on its fpath, or a sourced text. */
export function completeZsh(commands: readonly Command[], groups: Readonly<Record<string, string>>): string {
  const single = commands.filter(({ name }) => !name.includes(' '));
  const names = Object.keys(groups);
  const membersOf = (group: string) => commands.filter(({ name }) => name.startsWith(`${group} `));
  return [
    '#compdef cpn\n# zsh completion for cpn, made by "cpn completion zsh"\n',
    ...commands.map(completeCommand),
    ...names.map((group) => completeGroup(functionOf(group), membersOf(group).map(describe), [])),
    completeGroup('_cpn', [...single.map(describe), ...Object.entries(groups)], ['version']),
    interfaces,
    tail,
  ].join('\n');
}

function describe({ name, summary }: Command): [string, string] {
  return [name.split(' ').at(-1) ?? name, summary];
}

function completeCommand(command: Command): string {
  const flags = offerFlags(command).map(({ name, summary, value, isRepeatable }) => {
    const text = `[${guard(summary, /[[\]\\]/g)}]`;
    const given = value === null ? text : `=${text}:${guard(value.name, /[:\\]/g)}:${act(value.offer)}`;
    return `${isRepeatable ? '*' : ''}${name}${given}`;
  });
  const places = offerArguments(command).map(({ name, offer }, index) => `${index + 1}:${name}:${act(offer)}`);
  const specs = [...flags, helpFlag, ...places].map((spec) => `    ${quote(spec)}`);
  return `${functionOf(command.name)}() {\n  _arguments \\\n${specs.join(' \\\n')}\n}\n`;
}

/** A function that completes the next word, and delegates the rest to that word's function. */
function completeGroup(
  name: string,
  members: readonly (readonly [string, string])[],
  flags: readonly string[],
): string {
  const rows = members.map(([word, summary]) => `    ${quote(`${word}:${guard(summary, /[:\\]/g)}`)}`);
  const cases = members.map(([word]) => `        ${word}) ${functionOf(word, name)} ;;`);
  const options = [helpFlag, ...flags.map((flag) => `(- *)--${flag}[show the ${flag}]`)].map(quote);
  return `${name}() {
  local curcontext=$curcontext state line ret=1
  local -A opt_args
  local -a members=(
${rows.join('\n')}
  )
  _arguments -C ${options.join(' ')} '1: :->member' '*:: :->rest' && ret=0
  case $state in
    member) _describe -t commands command members && ret=0 ;;
    rest)
      case $line[1] in
${cases.join('\n')}
      esac && ret=0
      ;;
  esac
  return ret
}
`;
}

const helpFlag = '(- *)--help[show help]';

function functionOf(name: string, within = '_cpn'): string {
  return `${within}_${name.replaceAll(/[ -]/g, '_')}`;
}

function act(offer: Offer): string {
  const actions = { files: '_files', folders: '_files -/', interfaces: '_cpn_interfaces', nothing: ' ' };
  return offer.of === 'words' ? `(${offer.words.join(' ')})` : actions[offer.of];
}

const guard = (text: string, special: RegExp): string => text.replaceAll(special, '\\$&');
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const interfaces = `_cpn_interfaces() {
  local -a names=(\${CPN_STATE_DIR:-/var/lib/cpn}/*.json(N:t:r))
  (( $#names )) && _values interface $names
}
`;

const tail = `# Sourced, it registers itself; loaded by its name, it is the function.
if [[ $funcstack[1] == _cpn ]]; then _cpn "$@"; else compdef _cpn cpn; fi
`;
