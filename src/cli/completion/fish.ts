import type { Command } from '../parse/command.ts';
import { type Offer, offerArguments, offerFlags } from './offer.ts';

/** Completion for fish 3 or newer. */
export function completeFish(commands: readonly Command[], groups: Readonly<Record<string, string>>): string {
  const single = commands.filter(({ name }) => !name.includes(' '));
  const names = Object.keys(groups);
  return [
    head(names),
    line({ at: '', text: 'show the version' }, '-l version'),
    line({ at: null, text: 'show help' }, '-l help'),
    ...single.map(({ name, summary }) => line({ at: '', text: summary }, `-a ${name}`)),
    ...Object.entries(groups).map(([name, summary]) => line({ at: '', text: summary }, `-a ${name}`)),
    ...commands.flatMap(completeCommand),
    '',
  ].join('\n');
}

function completeCommand(command: Command): string[] {
  const { name, summary } = command;
  const [group, member] = name.split(' ');
  const entry = member === undefined ? [] : [line({ at: group ?? '', text: summary }, `-a ${member}`)];
  const flags = offerFlags(command).map((flag) =>
    line(
      { at: name, text: flag.summary },
      `-l ${flag.name.slice(2)}${flag.value === null ? '' : ` ${follow(flag.value.offer)}`}`,
    ),
  );
  const places = offerArguments(command).flatMap(({ offer }, index) =>
    offer.of === 'nothing' ? [] : [line({ at: name, place: index }, follow(offer).replace(/^-[xr] /, ''))],
  );
  return [...entry, ...flags, ...places];
}

/** `at` is the command before the cursor, null for any. `place` counts its arguments so far. */
function line({ at, text, place }: { at: string | null; text?: string; place?: number }, what: string): string {
  const condition = at === null ? '' : ` -n "__cpn_at '${at}'${place === undefined ? '' : ` ${place}`}"`;
  return `complete -c cpn${condition} ${what}${text === undefined ? '' : ` -d ${quote(text)}`}`;
}

/** `-x` requires a value and offers no files. `-r` requires a value and offers files. */
function follow(offer: Offer): string {
  if (offer.of === 'words') return `-x -a ${quote(offer.words.join(' '))}`;
  const ways = {
    files: '-r -F',
    folders: "-x -a '(__fish_complete_directories)'",
    interfaces: "-x -a '(__cpn_interfaces)'",
    nothing: '-x',
  };
  return ways[offer.of];
}

const quote = (text: string): string => `'${text.replaceAll(/['\\]/g, '\\$&')}'`;

const head = (groups: readonly string[]): string => `# fish completion for cpn, made by "cpn completion fish"

# Whether the words before the cursor are this command, and, where a number is given, that many arguments of it.
function __cpn_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l named
    for word in $words
        string match -q -- '-*' $word; or set -a named $word
    end
    set -l command $named[1]
    set -l length 1
    if contains -- "$command" ${groups.join(' ')}
        set command (string join ' ' -- $named[1..2])
        set length (math "min(2, $(count $named))")
    end
    test "$command" = "$argv[1]"; or return
    test (count $argv) -lt 2; or test (math (count $named) - $length) -eq $argv[2]
end

function __cpn_interfaces
    set -l folder /var/lib/cpn
    set -q CPN_STATE_DIR; and set folder $CPN_STATE_DIR
    for file in $folder/*.json
        basename $file .json
    end
end

complete -c cpn -f`;
