import { closest, distance } from 'fastest-levenshtein';
import { type Command, groups } from './command.ts';

/** The most similar candidate, or the only one with this beginning. Null without one. */
export function findSimilar(word: string, candidates: readonly string[]): string | null {
  const longer = candidates.filter((candidate) => word.length > 2 && candidate.startsWith(word));
  if (longer.length === 1) return longer[0] ?? null;
  const nearest = closest(word, candidates);
  const most = Math.min(maxDistance, Math.max(word.length, nearest.length) / 2);
  return distance(word, nearest) <= most ? nearest : null;
}

const maxDistance = 3;

/** The commands that the user probably meant, most likely first. */
export function findMeant(words: readonly [string, ...string[]], commands: readonly Command[]): readonly string[] {
  const [first, second] = words;
  if (Object.hasOwn(groups, first) && second !== undefined) return findMember(first, second, commands);
  if (first.startsWith('cpn_')) return ['join'];
  const members = commands.filter(({ name }) => name.endsWith(` ${first}`)).map(({ name }) => name);
  const known = findSynonyms(first).filter((synonym) => commands.some(({ name }) => name === synonym));
  if (known.length + members.length > 0) return [...new Set([...known, ...members])].slice(0, maxSuggestions);
  const firstWords = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? name))];
  const similar = findSimilar(first, firstWords);
  return similar === null ? [] : [withRest(similar, second, commands)];
}

const maxSuggestions = 4;

function findMember(group: string, word: string, commands: readonly Command[]): readonly string[] {
  const members = commands
    .filter(({ name }) => name.startsWith(`${group} `))
    .map(({ name }) => name.split(' ')[1] ?? '');
  const similar = findSimilar(word, members) ?? findSynonyms(word).find((synonym) => members.includes(synonym));
  return similar ? [`${group} ${similar}`] : [];
}

/** A group with the given second word, if such a command exists. Otherwise only the first word. */
function withRest(first: string, second: string | undefined, commands: readonly Command[]): string {
  const both = `${first} ${second}`;
  return commands.some(({ name }) => name === both) ? both : first;
}

function findSynonyms(word: string): readonly string[] {
  return Object.hasOwn(synonyms, word) ? (synonyms[word] ?? []) : [];
}

/** Words of other programs, and the equivalent commands of cpn. */
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
  peers: ['peer list', 'status'],
  ping: ['explain'],
  route: ['explain'],
  trace: ['explain'],
  log: ['events', 'audit'],
  logs: ['events', 'audit'],
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
