/**
 * Checks that code and texts use the field's terms: no personification and no archaism, in
 * identifiers either. Comments are stricter, and at most 100 columns wide. Prints each finding with
 * its replacement, and then exits with 1. Takes files and folders; without any it checks the whole
 * project.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { styleText } from 'node:util';

/** Each word, and what to write. */
const WORDS: Readonly<Record<string, string>> = {
  anew: 'again',
  asks: '"requests", "queries", "prompts"',
  beside: '"in addition to", "next to", "other than"',
  besides: '"in addition", "other than"',
  hears: '"receives"',
  heed: '"respect", "follow"',
  heeded: '"respected", "followed"',
  detours: '"relayed peers", "bypass route"',
  heir: '"new owner"',
  nobody: '"no one" with a role: "no peer", "no process"',
  nudge: '"trigger a handshake"',
  nudged: '"triggered"',
  outcast: '"unlisted peer"',
  reckon: '"compute", "estimate"',
  reckoned: '"computed", "estimated"',
  somebody: 'the role: "a user", "an operator", "another program"',
  surroundings: '"underlay" of a host',
  told: '"received", "reported", "logged", "given"',
  victim: '"target"',
  victims: '"targets"',
  whoever: 'the role: "the caller", "a client that"',
  whomever: 'the role: "the peer that", "the caller"',
};
/** Words that a comment does not use of a program. */
const COMMENT_WORDS: Readonly<Record<string, string>> = {
  hears: '"receives"',
  knows: '"has", "lists", "supports"',
  says: '"states", "reports", "contains"',
  speaks: '"uses", "supports"',
  tells: '"reports", "distinguishes", "gives"',
  whom: 'the role: "the user that", "the peer that"',
};
/** The most columns of a line of a comment. */
const COMMENT_WIDTH = 100;

const PLACES = ['src', 'test', 'scripts', 'packaging', 'docs', 'README.md', 'CONTRIBUTING.md', 'SECURITY.md'];
/** Their comments are checked too. */
const COMMENTED = /^(src|scripts|packaging)\/.*\.(ts|tsx)$/;
const PATTERN = patternOf(WORDS);
const COMMENT_PATTERN = patternOf(COMMENT_WORDS);
const COMMENT_LINE = /^\s*(\/\*\*|\*|\/\/)/;
/** Values of the API that are contracts, and a name that other services use. */
const CONTRACT = /'nobody'|'organisation'/g;
/**
 * What texts spell in one way. Names of the API, and so identifiers, have `enrollment`, `origin`
 * and `admin_device`.
 */
const SPELLINGS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\borganisation(s|'s)?\b/gi, '"organization"'],
  [/(?<![\w/.-])enrollment (key|keys|token|tokens|of|by|with|is|was)\b(?! as\b)/gi, '"enrolment"'],
  [/\badmin devices?\b/gi, '"laptop or phone"'],
];
/** These name the words. */
const LISTS = ['scripts/check-words.ts', 'test/scripts/check-words.test.ts'];

interface Found {
  /** Counts from 1. */
  readonly line: number;
  readonly word: string;
  readonly instead: string;
}

function patternOf(words: Readonly<Record<string, string>>): RegExp {
  return new RegExp(`\\b(${Object.keys(words).join('|')})\\b`, 'gi');
}

/**
 * Finds what is wrong with the comments of a program: their own words, and lines that are too wide.
 */
export function findInComments(text: string): Found[] {
  return text.split('\n').flatMap((content, at) => {
    const line = at + 1;
    const trailing = content.search(/ \/\/ /);
    const comment = COMMENT_LINE.test(content) ? content : trailing < 0 ? '' : content.slice(trailing);
    const words = [...comment.matchAll(COMMENT_PATTERN)].map(([found]) => {
      const word = found.toLowerCase();
      return { line, word, instead: COMMENT_WORDS[word] ?? '' };
    });
    const isWide = COMMENT_LINE.test(content) && content.length > COMMENT_WIDTH;
    return isWide
      ? [...words, { line, word: `${content.length} columns`, instead: `at most ${COMMENT_WIDTH}` }]
      : words;
  });
}

/** Finds the words in a text. */
export function findWords(text: string): Found[] {
  return text.split('\n').flatMap((content, at) => {
    // An identifier is made of words too.
    const text = content.replaceAll(CONTRACT, '');
    const words = text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll('_', ' ');
    const spellings = SPELLINGS.flatMap(([pattern, instead]) =>
      [...text.matchAll(pattern)].map(([found]) => ({ line: at + 1, word: found.toLowerCase(), instead })),
    );
    const terms = [...words.matchAll(PATTERN)].map(([found]) => {
      const word = found.toLowerCase();
      return { line: at + 1, word, instead: WORDS[word] ?? '' };
    });
    return [...terms, ...spellings];
  });
}

function listFiles(place: string): string[] {
  if (statSync(place).isFile()) return [place];
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(tsx?|cjs|js|md|sh|py|yml|yaml)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..');
  const given = process.argv.slice(2);
  const places = given.length > 0 ? given : PLACES.map((place) => join(root, place));
  const lines = places
    .flatMap(listFiles)
    .map((file) => relative(root, file))
    .filter((file) => !LISTS.includes(file))
    .flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      const found = [...findWords(text), ...(COMMENTED.test(file) ? findInComments(text) : [])];
      return found.map(({ line, word, instead }) => `${file}:${line}: "${word}": write ${instead}`);
    });
  for (const line of lines) process.stdout.write(`${line}\n`);
  if (lines.length > 0) process.stdout.write(styleText('red', `${lines.length} words to replace\n`));
  process.exitCode = lines.length > 0 ? 1 : 0;
}
