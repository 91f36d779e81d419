import { describe, expect, test } from 'vitest';
import { describeCell, describeTrafficOf, indexAccess, toTrafficQuery } from '../../src/console/logic/matrix/access.ts';
import { changeTags } from '../../src/console/logic/peers/connectors.ts';
import { searchPeers } from '../../src/console/logic/peers/peer-text.ts';
import {
  countSeconds,
  describeChange,
  describeProblems,
  describeTested,
  describeTraffic,
  enforcers,
  modeTexts,
  sortEnforcement,
} from '../../src/console/logic/rules/describe-rules.ts';
import {
  checkRule,
  isUnchanged,
  moveItem,
  readPort,
  readSeconds,
  readTest,
  setItem,
  toDraft,
  toSetRules,
} from '../../src/console/logic/rules/draft.ts';
import { addSelector, listSelectors, suggestSelectors } from '../../src/console/logic/rules/selectors.ts';
import { type AccessRule, Enforcement, type NetworkRules, RulesMode, SetRules } from '../../src/contract/rules.ts';
import { at, later, network, now, peer } from './samples.ts';

const ssh: AccessRule = { name: 'ssh', from: ['tag:admin'], to: ['any'], protocol: 'tcp', ports: ['22'] };
const web: AccessRule = {
  name: 'web',
  from: ['any'],
  to: ['peer:web 1'],
  protocol: 'tcp',
  ports: ['443', '8000-8080'],
};
const stored: NetworkRules = {
  ...{ mode: 'closed', rules: [ssh, web], require_enforcement: false, confirm_until: at },
  tests: [{ from: 'peer:web 1', to: 'peer:db', protocol: 'tcp', port: 5432, expect: 'deny' }],
  enforcement: [{ peer: { id: 1, name: 'web 1' }, by: 'destination' }],
  warnings: [],
};

describe('a draft', () => {
  test('has what a user edits, and is sent back unchanged', () => {
    const draft = toDraft(stored);
    expect(Object.keys(draft).toSorted()).toEqual(['mode', 'require_enforcement', 'rules', 'tests']);
    expect(SetRules.parse(toSetRules(draft))).toEqual(draft);
    expect(SetRules.parse(toSetRules(draft, 60))).toEqual({ ...draft, confirm_within_seconds: 60 });
    expect([isUnchanged(draft, stored), isUnchanged({ ...draft, mode: 'open' }, stored)]).toEqual([true, false]);
  });

  test('has its items replaced, appended and moved, and keeps the ends of a list', () => {
    expect(setItem(['a', 'b'], 0, 'c')).toEqual(['c', 'b']);
    expect(setItem(['a', 'b'], 2, 'c')).toEqual(['a', 'b', 'c']);
    expect(moveItem(['a', 'b', 'c'], 2, -1)).toEqual(['a', 'c', 'b']);
    expect(moveItem(['a', 'b', 'c'], 0, 1)).toEqual(['b', 'a', 'c']);
    expect(moveItem(['a', 'b'], 0, -1)).toEqual(['a', 'b']);
    expect(moveItem(['a', 'b'], 1, 1)).toEqual(['a', 'b']);
  });

  test.each([
    [ssh, {}],
    [{ ...ssh, name: ' ' }, { name: ['must not be empty'] }],
    [{ ...ssh, name: 'web' }, { name: ['is the name of another rule'] }],
    [{ ...ssh, from: [] }, { from: ['must have a selector, or any'] }],
    [{ ...ssh, to: [] }, { to: ['must have a selector, or any'] }],
  ] as const)('takes no rule that is not complete: %j', (rule, problems) => {
    expect(checkRule(rule as AccessRule, [web])).toEqual(problems);
  });

  test('takes a test from the text of its fields', () => {
    const fields = { from: ' peer:a ', to: 'tag:b', protocol: 'tcp', expect: 'deny' } as const;
    const read = { from: 'peer:a', to: 'tag:b', protocol: 'tcp', expect: 'deny' };
    expect(readTest(fields, ' 22 ')).toEqual({ test: { ...read, port: 22 } });
    expect(readTest(fields, '')).toEqual({ test: read });
    expect(readTest({ ...fields, protocol: 'icmp' }, '22')).toEqual({ test: { ...read, protocol: 'icmp' } });
    const port = ['must be from 1 to 65535'];
    for (const text of ['0', '65536', '1e3', '-1', '2.5'])
      expect(readTest(fields, text)).toEqual({ problems: { port } });
    const selector = ['must be a selector'];
    expect(readTest({ ...fields, from: '', to: ' ' }, '')).toEqual({ problems: { from: selector, to: selector } });
  });

  test('has a port from 1 to 65535, and from 10 to 3600 seconds to confirm it', () => {
    expect(['1', '65535', '0', '65536', '', 'x', '1-2'].map(readPort)).toEqual([1, 65_535, ...Array(5).fill(null)]);
    expect(['10', '3600', '9', '3601', '', '1e3'].map(readSeconds)).toEqual([10, 3600, ...Array(4).fill(null)]);
  });
});

describe('selectors', () => {
  const office = network([peer(1, { name: 'web 10', tags: ['web'] }), peer(2, { name: 'web 2', tags: ['web', 'a'] })], {
    routes: ['192.168.1.0/24'],
  });
  const used = { ...ssh, from: ['gone:db', 'tag:admin', 'cidr:192.168.1.7'] };

  test('are those of a network and of its rules, without peers that were removed', () => {
    expect(listSelectors(office, [used])).toEqual([
      ...['any', 'tag:a', 'tag:admin', 'tag:web', 'route:192.168.1.0/24'],
      ...['peer:web 2', 'peer:web 10', 'cidr:192.168.1.7'],
    ]);
  });

  test('are suggested by a part of their text, unless they are chosen, and not in thousands', () => {
    const all = listSelectors(office, []);
    expect(suggestSelectors(all, ' WEB ')).toEqual(['tag:web', 'peer:web 2', 'peer:web 10']);
    expect(suggestSelectors(all, 'web', ['tag:web'])).toEqual(['peer:web 2', 'peer:web 10']);
    const many = network(Array.from({ length: 1000 }, (_, id) => peer(id)));
    expect(suggestSelectors(listSelectors(many, []), 'peer')).toHaveLength(50);
  });

  test('are added without blanks, and once', () => {
    expect(addSelector(['any'], ' peer:web 1 ')).toEqual(['any', 'peer:web 1']);
    expect(addSelector(['any'], ' any ')).toEqual(['any']);
    expect(addSelector(['any'], ' ')).toEqual(['any']);
  });
});

test.each([
  [{ protocol: 'any', ports: [] }, 'any'],
  [{ protocol: 'icmp', ports: [] }, 'icmp'],
  [{ protocol: 'other', ports: [] }, 'other protocols'],
  [{ protocol: 'udp', ports: [] }, 'udp, all ports'],
  [{ protocol: 'other', ports: [] }, 'other protocols'],
  [{ protocol: 'tcp', ports: ['22', '8000-8080'] }, 'tcp 22, 8000-8080'],
] as const)('connections of %j read %s', (traffic, text) => {
  expect(describeTraffic({ ...traffic, ports: [...traffic.ports] })).toBe(text);
});

test('of ICMP between peers, a preview leaves out echo requests', () => {
  const icmp = (from: string) => describeChange({ from, to: 'peer:db', protocol: 'icmp', ports: [] });
  expect(['peer:web', 'any', 'route:192.168.50.0/24'].map(icmp)).toEqual(['icmp except echo', 'icmp', 'icmp']);
});

test('tests, modes and enforcement have their words', () => {
  expect([describeTested({ protocol: 'tcp', port: 22 }), describeTested({ protocol: 'icmp' })]).toEqual([
    'tcp 22',
    'icmp',
  ]);
  expect(Object.keys(modeTexts)).toEqual(RulesMode.options);
  expect(Object.keys(enforcers)).toEqual(Enforcement.shape.by.options);
  const of = (id: number, by: Enforcement['by']) => ({ peer: { id, name: `p${id}` }, by });
  const sorted = sortEnforcement([of(3, 'connector'), of(2, 'destination'), of(4, 'nothing')]);
  expect(sorted.map(({ peer: { id } }) => id)).toEqual([4, 2, 3]);
});

test('a refusal names the rule at the position that it has', () => {
  const fields = {
    rules: ['item 1.from.0 must be at most 160 characters', 'must be at most 1000'],
    'rules.1.from.0': ['"peer:x" is no peer'],
    'rules.7': ['"web" has too many elements'],
    tests: ['item 0.to is required'],
    'tests.0': ['a to b must be allow: no rule allows it'],
    mode: ['is required'],
  };
  expect(describeProblems(fields, toDraft(stored))).toEqual([
    'Rule web, from.0: must be at most 160 characters.',
    'Rules must be at most 1000.',
    'Rule web, from.0: "peer:x" is no peer.',
    'Rule 8: "web" has too many elements.',
    'Test 1, to: is required.',
    'Test 1: a to b must be allow: no rule allows it.',
    'Mode is required.',
  ]);
});

test('the time to confirm runs to 0, and no further', () => {
  expect([countSeconds(later(60), now), countSeconds(later(0.2), now), countSeconds(later(-5), now)]).toEqual([
    60, 1, 0,
  ]);
});

describe('the matrix of a port', () => {
  const [a, b, c] = [peer(1, { name: 'a' }), peer(2, { name: 'b: 2' }), peer(3, { name: 'c' })];

  test('has the rule of each allowed pair, and no other pair is allowed', () => {
    const index = indexAccess({
      pairs: [
        { from: 'peer:a', to: 'peer:b: 2', rule: 'web' },
        { from: 'route:10.0.0.0/24', to: 'peer:c', rule: 'lan' },
      ],
      complete: true,
    });
    expect(describeCell(index, a, b)).toBe('a to b: 2: allowed by web');
    expect(describeCell(index, b, a)).toBe('b: 2 to a: denied');
    expect(describeCell(index, a, c)).toBe('a to c: denied');
  });

  test('claims no denial of pairs that a list without them may lack', () => {
    const index = indexAccess({ pairs: [{ from: 'peer:a', to: 'peer:c', rule: 'web' }], complete: false });
    expect([index.stateOf(a, c), index.stateOf(c, a), index.isComplete]).toEqual(['allowed', 'unknown', false]);
  });

  test('is allowed without a rule in an open network', () => {
    const index = indexAccess({ pairs: [{ from: 'any', to: 'any', rule: null }], complete: true });
    expect([describeCell(index, a, b), index.ruleOf(a, b)]).toEqual(['a to b: 2: allowed', null]);
  });

  test('has a query for a valid port alone', () => {
    expect(toTrafficQuery({ protocol: 'tcp', port: ' 443' }, { to: 'peer:b&c' })).toBe(
      'to=peer%3Ab%26c&protocol=tcp&port=443',
    );
    expect(toTrafficQuery({ protocol: 'icmp', port: '443' })).toBe('protocol=icmp');
    for (const port of ['', '0', '70000', 'ssh']) expect(toTrafficQuery({ protocol: 'udp', port })).toBeNull();
    expect([
      describeTrafficOf({ protocol: 'tcp', port: ' 443' }),
      describeTrafficOf({ protocol: 'icmp', port: '1' }),
    ]).toEqual(['tcp 443', 'icmp']);
  });
});

test('tags are sent where they change, once each, and a search finds them', () => {
  const tagged = peer(1, { tags: ['web', 'db'] });
  expect(changeTags(tagged, ['db', 'web'])).toEqual({});
  expect(changeTags(tagged, [])).toEqual({ tags: [] });
  expect(changeTags(peer(2), ['web', 'web'])).toEqual({ tags: ['web'] });
  expect(changeTags(peer(2), [])).toEqual({});
  expect(searchPeers([tagged, peer(2)], 'db')).toEqual([tagged]);
});
