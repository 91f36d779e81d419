import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  catalogue,
  type FactsOf,
  type Problem,
  type ProblemCode,
  problem,
} from '../../../src/core/problems/problem.ts';
import { samples } from './samples.ts';

const repository = join(import.meta.dirname, '../../..');
const read = (path: string) => readFileSync(join(repository, path), 'utf8');
const codes = Object.keys(catalogue) as ProblemCode[];
const sources = globSync('src/{app,api,cli,core,host,store}/**/*.ts', { cwd: repository })
  .filter((path) => !path.startsWith('src/core/problems/'))
  .map((path): [string, string] => [path, withoutComments(read(path))]);

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*\*?.*?\*\//gs, '').replaceAll(/^ *\/\/.*$/gm, '');
}

const word = <Code extends ProblemCode>(code: Code, facts: FactsOf<Code> = samples[code]): Problem =>
  problem(code, facts);

/** The longest part of a text that no fact is in. */
function fixedPart(code: ProblemCode, { text, facts }: Problem): string {
  const values = Object.values(facts)
    .flat()
    .map(String)
    .filter((value) => value.length > 1);
  const pattern = values.map((value) => value.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  const parts = text.split(new RegExp(pattern));
  return parts.toSorted((one, other) => other.length - one.length)[0] ?? code;
}

/** Errors and the admin commands word these; the catalogue takes the words from there. */
const elsewhere = ['src/core/errors/host.ts', 'src/core/map/skipped-peers.ts'];

describe('the catalogue of problems', () => {
  it.each(codes)('has %s, which something produces', (code) => {
    const made = new RegExp(`problem\\(\\s*'${code}'`);
    expect(sources.filter(([, text]) => made.test(text)).map(([path]) => path)).not.toEqual([]);
  });

  it.each(codes)('has %s, which docs name with its severity and meaning', (code) => {
    const { title, severity } = catalogue[code];
    const kind = typeof severity === 'function' ? 'either' : severity;
    expect(read('docs/problems.md')).toContain(`| \`${code}\` | ${kind} | ${title} |`);
  });

  it('has all that the page names', () => {
    const rows = [...read('docs/problems.md').matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, code]) => code);
    expect(rows).toEqual(codes);
  });

  it.each(codes)('alone words %s', (code) => {
    const { title } = catalogue[code];
    const fixed = fixedPart(code, word(code));
    const others = sources.filter(([path]) => !elsewhere.includes(path));
    const isWorded = (source: string) =>
      ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}`)) ||
      (fixed.length > 24 && source.includes(fixed));
    const found = others.filter(([, source]) => isWorded(source));
    expect(found.map(([path]) => path)).toEqual([]);
  });

  it.each(codes)('words %s in clauses of at most 25 words, without a full stop', (code) => {
    const { text, summary, remedy } = word(code);
    for (const each of [text, summary, ...(remedy === null ? [] : [remedy])]) {
      expect(each).not.toMatch(/\.$|undefined|\[object/);
      for (const clause of each.split(/[;:] /)) expect(clause.split(' ').length, clause).toBeLessThanOrEqual(25);
    }
    expect(catalogue[code].title).toMatch(/^[^A-Z].*[^.]$/);
  });
});
