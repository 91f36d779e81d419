import yargs from 'yargs';
import type { Command } from './command.ts';
import { groups } from './groups.ts';

/** The one of `candidates` that somebody may have meant who wrote `word`; null where none comes near. */
export function findSimilar(word: string, candidates: readonly string[]): string | null {
  let found: string | null = null;
  // yargs measures how many letters lie between two words, but only between commands, and tells only in a message.
  const guesser = yargs()
    .help(false)
    .version(false)
    .exitProcess(false)
    .strictCommands()
    .recommendCommands()
    .fail((message) => {
      found ??= /^Did you mean (.*)\?$/.exec(message ?? '')?.[1] ?? null;
    });
  for (const candidate of candidates) guesser.command(candidate, '');
  guesser.parse([word.replace(/^-+/, '')]);
  // Three letters, which it lets differ, are much of a short word.
  if (found !== null && lettersInCommon(word, found) > Math.max(word.length, String(found).length) / 2) return found;
  const longer = candidates.filter((candidate) => candidate.startsWith(word));
  return word.length > 2 && longer.length === 1 ? (longer[0] ?? null) : null;
}

/** What somebody may have meant who wrote words that are no command: whole commands, the likeliest first. */
export function findMeant(words: readonly [string, ...string[]], commands: readonly Command[]): readonly string[] {
  const [first, second] = words;
  if (Object.hasOwn(groups, first) && second !== undefined) return findMember(first, second, commands);
  const firstWords = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? name))];
  const similar = findSimilar(first, firstWords);
  if (similar !== null) return [withRest(similar, second, commands)];
  if (first.startsWith('cpn_')) return ['join'];
  const members = commands.filter(({ name }) => name.endsWith(` ${first}`)).map(({ name }) => name);
  const known = findSynonyms(first).filter((synonym) => commands.some(({ name }) => name === synonym));
  return [...new Set([...known, ...members])].slice(0, mostNamed);
}

const mostNamed = 4;

function findMember(group: string, word: string, commands: readonly Command[]): readonly string[] {
  const members = commands
    .filter(({ name }) => name.startsWith(`${group} `))
    .map(({ name }) => name.split(' ')[1] ?? '');
  const similar = findSimilar(word, members) ?? findSynonyms(word).find((synonym) => members.includes(synonym));
  return similar ? [`${group} ${similar}`] : [];
}

/** A group with the second word that was given, where it has such a command. */
function withRest(first: string, second: string | undefined, commands: readonly Command[]): string {
  const both = `${first} ${second}`;
  return commands.some(({ name }) => name === both) ? both : first;
}

function findSynonyms(word: string): readonly string[] {
  return Object.hasOwn(synonyms, word) ? (synonyms[word] ?? []) : [];
}

/** Words that other programs have for what commands of this one do. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  connect: ['join', 'up'],
  enroll: ['join'],
  enrol: ['join'],
  register: ['join'],
  init: ['join'],
  install: ['join'],
  add: ['join', 'create'],
  new: ['create'],
  create: ['network create', 'key create'],
  start: ['up', 'run'],
  restart: ['reconcile'],
  stop: ['down'],
  disconnect: ['down'],
  show: ['status'],
  list: ['status'],
  ls: ['status', 'list'],
  info: ['status'],
  peers: ['status', 'peer list'],
  ping: ['explain'],
  route: ['explain'],
  trace: ['explain'],
  check: ['doctor', 'status'],
  diagnose: ['doctor'],
  diff: ['plan'],
  apply: ['reconcile'],
  sync: ['reconcile'],
  refresh: ['reconcile'],
  daemon: ['run'],
  server: ['control-plane serve'],
  config: ['set', 'export'],
  configure: ['set'],
  remove: ['leave', 'delete'],
  rm: ['leave', 'remove', 'delete'],
  delete: ['leave', 'remove'],
  uninstall: ['leave'],
  signin: ['login'],
  signout: ['logout'],
};

function lettersInCommon(one: string, other: string): number {
  const left = [...other];
  return [...one].filter((letter) => {
    const at = left.indexOf(letter);
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  }).length;
}
