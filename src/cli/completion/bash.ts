import type { Command } from '../parse/command.ts';
import { type Offer, offerArguments, offerFlags } from './offer.ts';

/** Completion for bash 4.4 or newer. It starts no process, and does not need bash-completion. */
export function completeBash(commands: readonly Command[], groups: readonly string[]): string {
  const first = [...commands.flatMap(({ name }) => (name.includes(' ') ? [] : [name])), ...groups];
  const members = (group: string) =>
    commands.flatMap(({ name }) => (name.startsWith(`${group} `) ? [name.slice(group.length + 1)] : []));
  return [
    head,
    ...commands.map(describeCommand),
    ...groups.map((group) => describe(group, ['--help'], [], [words(members(group))], true)),
    describe('', ['--help', '--version'], [], [words(first)], true),
    middle,
    ...commands.flatMap(describeValues),
    tail,
  ].join('\n');
}

function describeCommand(command: Command): string {
  const flags = offerFlags(command);
  const valued = flags.flatMap(({ name, value }) => (value ? [name] : []));
  const places = offerArguments(command).map(({ offer }) => print(offer));
  return describe(command.name, [...flags.map(({ name }) => name), '--help'], valued, places, false);
}

/** The word after a group is the rest of the command's name, and no argument. */
function describe(name: string, flags: string[], valued: string[], places: string[], isGroup: boolean): string {
  const facts = [
    `flags='${flags.join(' ')}'`,
    `valued='${valued.join(' ')}'`,
    `places=(${places.map((place) => `'${place}'`).join(' ')})`,
    `group=${isGroup ? 1 : ''}`,
  ];
  return `    '${name}') ${facts.join(' ')} ;;`;
}

function describeValues(command: Command): string[] {
  return offerFlags(command).flatMap(({ name, value }) =>
    value && value.offer.of !== 'nothing' ? [`    '${command.name} ${name}') offer='${print(value.offer)}' ;;`] : [],
  );
}

const words = (list: readonly string[]): string => `words ${list.join(' ')}`;
const print = (offer: Offer): string => (offer.of === 'words' ? words(offer.words) : offer.of);

const head = `# bash completion for cpn, made by "cpn completion bash"

# What may follow a command: sets flags, valued (those that take a value), places (an offer for each argument) and group.
_cpn_describe() {
  case $1 in`;

const middle = `  esac
}

# What may follow a flag of a command: sets offer.
_cpn_describe_value() {
  offer=nothing
  case "$1 $2" in`;

const tail = `  esac
}

_cpn() {
  local command='' flags valued places group=1 offer pending='' place=0 glue='' word cur i
  local -a words=()
  COMPREPLY=()
  # Readline takes --flag=value and HOST:PORT apart.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == *:* && -z \${word//:/} && \${#words[@]} -gt 0 ]]; then
      words[-1]+=$word glue=1
    elif [[ $word == '=' ]]; then
      [[ $i -lt $COMP_CWORD ]] || words+=('')
    elif [[ -n $glue ]]; then
      words[-1]+=$word glue=''
    else
      words+=("$word")
    fi
  done
  [[ \${#words[@]} -gt 0 ]] || words=('')
  cur=\${words[-1]}
  unset 'words[-1]'

  _cpn_describe ''
  for word in "\${words[@]}"; do
    if [[ -n $pending ]]; then
      pending=''
    elif [[ $word == -?* ]]; then
      [[ " $valued " != *" $word "* ]] || pending=$word
    elif [[ -n $group ]]; then
      command="\${command:+$command }$word" flags='' valued='' places=() group=''
      _cpn_describe "$command"
    else
      ((place += 1))
    fi
  done

  offer=\${places[place]-nothing}
  if [[ -n $pending ]]; then
    _cpn_describe_value "$command" "$pending"
  elif [[ $cur == -?* || ( $cur == - && $offer == nothing ) ]]; then
    offer="words $flags"
  fi
  case $offer in
    words\\ *) mapfile -t COMPREPLY < <(compgen -W "\${offer#words }" -- "$cur") ;;
    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    interfaces)
      for word in "\${CPN_STATE_DIR:-/var/lib/cpn}/$cur"*.json; do
        word=\${word##*/}
        # An interface's name has no slash, and without a match the pattern itself is left.
        [[ $word == *'*'* ]] || COMPREPLY+=("\${word%.json}")
      done
      ;;
  esac
}

complete -F _cpn cpn
`;
