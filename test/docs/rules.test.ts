import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { formatRules, parseRules } from '../../src/cli/rules/rules-file.ts';
import { mostElements, mostRules, mostSelectors } from '../../src/contract/rules.ts';
import { mostTags } from '../../src/core/rules/selector.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/rules.md'), 'utf8');

test('the example is a file of rules, which is read back from what is printed', () => {
  const [, example = ''] = /^```yaml\n(.*?)^```/ms.exec(page) ?? [];
  const { rules } = parseRules(example, 'example');
  expect([rules.mode, rules.rules.length, rules.tests.length]).toEqual(['closed', 3, 2]);
  expect(parseRules(formatRules(rules), 'printed').rules).toEqual(rules);
});

test('the limits are those of the contract', () => {
  const numbers = [...page.matchAll(/^\| [^|]+ \| ([\d,]+) \|$/gm)].map(([, text = '']) =>
    Number(text.replaceAll(',', '')),
  );
  expect(numbers).toEqual([mostRules, mostSelectors, mostTags, mostElements]);
});

test('the selectors are those that the parser takes', () => {
  const forms = [...page.matchAll(/^\| `(\w+)(?::\w+)?` \|/gm)].map(([, form]) => form);
  expect(forms).toEqual(['peer', 'tag', 'route', 'cidr', 'any', 'gone']);
  for (const text of ['peer:a', 'tag:a', 'route:10.0.0.0/8', 'cidr:10.0.0.1', 'any', 'gone:a'])
    expect(parseRules(`mode: open\nrules: [{name: a, from: ["${text}"], to: [any]}]`, 'f').rules.rules).toHaveLength(1);
});
