import fc from 'fast-check';

/** What an attacker would send into files of wg-quick, shells, paths, terminals, regular expressions. */
const known = [
  ...[
    '\n[Interface]\nPostUp = id\n',
    '\nPostUp=id',
    '\rPreUp=id',
    'Post\0Up = id',
    '\u2028PostDown = id',
    ' # \nDNS=1.1.1.1',
  ],
  ...['[Interface]', '[Peer]', '[interface] # x', 'SaveConfig = true', 'Table = off', 'PreDown', 'MTU=1; id'],
  ...['$(id)', '`id`', '; id', '| id', '&& id', '$IFS', '%i', '*', '/etc/host*', '~', '\\', '"', "'", '#', '=', ','],
  ...[
    '../../etc',
    '/',
    '.',
    '..',
    '',
    ' ',
    '\t',
    '\v',
    '\f',
    '\u00a0',
    '\ufeff',
    '\u0085',
    '\u2029',
    '\0',
    '\r\n',
    '\n',
    '\r',
  ],
  ...['\u{1b}[2J', '\u{9b}31m', '\u{202e}abc', '\u{200b}', '\ud800', '\udfff', 'ı', 'K', 'ſ', 'é', 'e\u0301', '💻'],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'null',
    'undefined',
    'NaN',
    'true',
    '-0',
    '1e309',
    '0x7f.1',
  ],
  ...[
    '0.0.0.0/0',
    '::/0',
    '::1',
    '::ffff:1.2.3.4',
    'fe80::1%eth0',
    '127.0.0.1',
    '169.254.169.254:80',
    '10.77.0.5/24',
    '010.1.1.1',
  ],
  ...[
    '[::1]:0',
    'x:65536',
    '99999999999999999999',
    '-1',
    '+5',
    '1.5',
    'off',
    '(none)',
    'default',
    'all',
    '<BROADCAST>',
  ],
];

/** Short texts that break what does not expect them. */
export const hostile: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...known) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 20 }) },
  { weight: 1, arbitrary: fc.array(fc.constantFrom(...known), { maxLength: 4 }).map((parts) => parts.join('')) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('a', 'x.', '-', '💻', '\\"'), fc.nat(400))
      .map(([unit, count]) => unit.repeat(count)),
  },
);

/** One change of a text: `at` and `length` are parts of the whole. */
interface Edit {
  readonly kind: 'insert' | 'replace' | 'delete' | 'double' | 'cut' | 'case' | 'swap';
  readonly at: number;
  readonly length: number;
  readonly text: string;
}

const part = fc.double({ min: 0, max: 1, noNaN: true });
const edit: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constantFrom('insert', 'replace', 'delete', 'double', 'cut', 'case', 'swap'),
  at: part,
  length: part.map((length) => length ** 4),
  text: hostile,
});

/** A text with a few changes, or none. */
export function mutated(texts: fc.Arbitrary<string>, mostEdits = 4): fc.Arbitrary<string> {
  return fc.tuple(texts, fc.array(edit, { maxLength: mostEdits })).map(([text, edits]) => edits.reduce(change, text));
}

function change(text: string, { kind, at, length, text: other }: Edit): string {
  const start = Math.floor(at * text.length);
  const end = start + Math.max(1, Math.floor(length * text.length));
  const [before, middle, after] = [text.slice(0, start), text.slice(start, end), text.slice(end)];
  switch (kind) {
    case 'insert':
      return before + other + middle + after;
    case 'replace':
      return before + other + after;
    case 'delete':
      return before + after;
    case 'double':
      return before + middle + middle + after;
    case 'cut':
      return before;
    case 'case':
      return before + (middle === middle.toUpperCase() ? middle.toLowerCase() : middle.toUpperCase()) + after;
    case 'swap':
      return after + middle + before;
  }
}

/** The longest text, in characters: work that grows with its square does not end within the bound. */
const MOST = 128 * 1024;

/** Long texts of few patterns, on which a regular expression with backtracking would not end. */
export function pumped(words: readonly string[]): fc.Arbitrary<string> {
  const word = fc.oneof(
    fc.constantFrom(...words),
    fc.string({ unit: 'binary', maxLength: 3 }),
    fc.constantFrom(...known),
  );
  const unit = fc.array(word, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''));
  return fc.tuple(word, unit, word, fc.integer({ min: 1, max: 18 })).map(([head, body, tail, power]) => {
    const count = Math.min(2 ** power, Math.floor(MOST / Math.max(1, body.length)));
    return (head + body.repeat(count) + tail).slice(0, MOST);
  });
}
