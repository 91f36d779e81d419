import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatRules, parseRules, readRulesFile } from '../../../src/cli/rules/rules-file.ts';

const problemOf = (text: string): string => {
  try {
    parseRules(text, 'rules.yaml');
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('the text was accepted');
};

const whole = `
mode: closed
require_enforcement: true
rules:
  - name: web to db
    from: [tag:web, peer:edge 1]
    to: [peer:db]
    protocol: tcp
    ports: [5432, 8000-8080, "443"]
  - name: all to the office
    from:
      - any
    to: ["route:192.168.50.0/24", cidr:192.168.60.7]
tests:
  - {from: tag:web, to: peer:db, port: 5432, expect: allow}
`;

describe('a file of rules', () => {
  it('in YAML has the fields of the API, with defaults, and ports as numbers or words', () => {
    expect(parseRules(whole, 'f').rules).toEqual({
      mode: 'closed',
      require_enforcement: true,
      rules: [
        {
          ...{ name: 'web to db', from: ['tag:web', 'peer:edge 1'], to: ['peer:db'], protocol: 'tcp' },
          ports: ['5432', '8000-8080', '443'],
        },
        {
          ...{ name: 'all to the office', from: ['any'], protocol: 'any', ports: [] },
          to: ['route:192.168.50.0/24', 'cidr:192.168.60.7/32'],
        },
      ],
      tests: [{ from: 'tag:web', to: 'peer:db', protocol: 'tcp', port: 5432, expect: 'allow' }],
    });
  });

  it('in JSON is the same, with tabs too', () => {
    const { rules } = parseRules(whole, 'f');
    for (const indent of [undefined, 2, '\t'])
      expect(parseRules(JSON.stringify(rules, null, indent), 'f').rules).toEqual(rules);
  });

  it('may repeat a list by an alias', () => {
    const { rules } = parseRules(
      'mode: closed\nrules:\n- {name: a, from: &all [any], to: *all}\n- {name: b, from: *all, to: *all}\n',
      'f',
    );
    expect(rules.rules.map(({ from }) => from)).toEqual([['any'], ['any']]);
  });

  it.each([
    ['mode: closed\nrule: []\n', 'line 2: rule is no field of rules; the fields here are mode, rules, tests,'],
    [
      'mode: closed\nrules:\n  - name: a\n    from: [any]\n    too: [any]\n',
      'line 5: rules[0].too is no field of rules; the fields here are name, from, to, protocol, ports',
    ],
    ['mode: closed\ntests:\n  - {from: any, to: any, want: deny}\n', 'line 3: tests[0].want is no field'],
    ['mode: closed\nconfirm_within_seconds: 60\n', 'line 2: confirm_within_seconds is no field'],
    ['mode: closed\n__proto__: {}\n', 'line 2: __proto__ is no field'],
    ['mode: shut\n', 'line 1: mode "shut" must be open or closed'],
    ['rules: []\n', 'line 1: mode is missing; write open or closed'],
    ['mode: closed\nrules:\n', 'line 2: rules is missing; write a list, or [] for none'],
    ['mode: closed\nrules: [web]\n', 'line 2: rules[0] "web" has no fields; write each as "field: value"'],
    [
      'mode: closed\nrules:\n  - name: a\n    to: [any]\n',
      'line 3: rules[0].from is missing; write a list, or [] for none',
    ],
    ['mode: closed\nrules:\n  - to: [any]\n    from: [any]\n', 'line 3: rules[0].name is missing; add it'],
    [
      'mode: closed\nrules:\n  - {name: 5, to: [any], from: [any]}\n',
      'line 3: rules[0].name "5" is no text; write it in quotes: "5"',
    ],
    [
      'mode: closed\nrules:\n  - name: a\n    to: [any]\n    from: peer:x\n',
      'line 5: rules[0].from "peer:x" is no list; write a list: [peer:x]',
    ],
    [
      'mode: closed\nrules:\n  - {name: a, from: [any], to: [any], protocol: tcp, ports: 22}\n',
      'line 3: rules[0].ports "22" is no list; write a list: [22]',
    ],
    [
      'mode: closed\nrules:\n  - {name: a, from: [any], to: [any], protocol: tcp, ports: [22.5]}\n',
      'line 3: rules[0].ports[0] "22.5" is no port or range of ports; write a port from 1 to 65535, or 8000-8080',
    ],
    [
      'mode: closed\nrules:\n  - {name: a, from: [any], to: [any], ports: [22]}\n',
      'line 3: rules[0].ports "22" is for tcp and udp alone; set protocol: tcp or udp',
    ],
    [
      'mode: closed\ntests:\n  - {from: any, to: any, protocol: icmp, port: 7, expect: deny}\n',
      'line 3: tests[0].port "7" is for tcp and udp alone; set protocol: tcp or udp',
    ],
    ['mode: closed\nrequire_enforcement: sure\n', 'line 2: require_enforcement "sure" is neither true nor false'],
    [
      'mode: closed\nrules:\n  - {name: a, from: [any], to: ["cidr:192.168.50.7/24"]}\n',
      'line 3: rules[0].to[0] "cidr:192.168.50.7/24" has host bits set; you probably mean cidr:192.168.50.0/24',
    ],
    [
      'mode: closed\nrules:\n  - {name: a, from: [any], to: ["route:192.168"]}\n',
      'line 3: rules[0].to[0] "route:192.168" is not an address range; write it like route:10.77.0.0/24',
    ],
    [
      'mode: closed\nrules:\n  - name: a\n    to: [any]\n    from: []\n',
      'line 5: rules[0].from "[]" must name a sender, or any',
    ],
    [
      'mode: closed\nrules:\n  - {name: a, from: [any], to: [any], protocol: sctp}\n',
      'line 3: rules[0].protocol "sctp" must be any or tcp or udp or icmp',
    ],
    [
      'mode: closed\nrules:\n- name: a\n  from: [any]\n  to:\n  - any\n  - host:db\n',
      'line 7: rules[0].to[1] "host:db" is no selector; write peer:NAME, tag:NAME, route:CIDR, cidr:CIDR or any',
    ],
    [
      'mode: closed\nrules:\n- {name: a, from: [any], to: [any], protocol: tcp, ports: [22, 70000]}\n',
      'line 3: rules[0].ports[1] "70000" is no port or range of ports',
    ],
    ['mode: closed\ntests:\n- {from: who:x, to: any, expect: deny}\n', 'tests[0].from "who:x"'],
    ['mode: closed\nmode: open\n', 'line 2: the field is there twice; leave one out'],
    ['mode: closed\nrules: [\n', 'line 3: Flow sequence in block collection'],
    ['mode: !js/function "x"\n', 'line 1: text that begins with ! needs quotes'],
    ['mode: closed\n---\nmode: open\n', 'line 2: a second document begins here; write one document'],
    ['rules:\n- from: [*]\n', 'line 2: text that begins with * needs quotes; all peers and routes are any'],
    ['mode: closed\nrules: *none\n', 'line 2: text that begins with * needs quotes'],
    ['mode: closed\nrules:\n\t- name: a\n', 'line 3: a tab is no indentation; indent with spaces'],
    ['rules:\n- name: web: all\n', 'line 2: text with ": " needs quotes, and each field its own line'],
    ['rules:\n- name: @web\n', 'line 2: text that begins with @, ` or % needs quotes'],
    ['', 'has no rules; write "mode: closed"'],
    ['- a\n', 'has no rules; write "mode: closed"'],
    ['hello\n', 'has no rules; write "mode: closed"'],
  ])('%j is refused: %s', (text, problem) => {
    expect(problemOf(text)).toContain(problem);
    expect(problemOf(text)).toMatch(/^"rules\.yaml"/);
  });

  it('that repeats its aliases beyond all bounds is refused', () => {
    const lines = Array.from({ length: 9 }, (_, at) => `l${at + 1}: &l${at + 1} [${`*l${at}, `.repeat(9)}]`);
    expect(problemOf(`l0: &l0 [any]\n${lines.join('\n')}\n`)).toContain('repeats its lists by aliases too often');
  });

  it('locates a value, also behind an alias and one that is not there', () => {
    const { at } = parseRules(
      'mode: closed\nrules:\n- {name: a, from: &all\n  [any], to: *all}\n- name: b\n  from: [any]\n  to: [any]\n',
      'rules.yaml',
    );
    expect(at(['rules', 1, 'to', 0])).toBe('"rules.yaml", line 7: rules[1].to[0]');
    expect(at(['rules', 0, 'from', 0])).toBe('"rules.yaml", line 4: rules[0].from[0]');
    expect(at(['rules', 1, 'ports', 3])).toBe('"rules.yaml", line 5: rules[1].ports[3]');
  });

  it('is printed so that it is read back, with nothing in it that controls a terminal', () => {
    const { rules } = parseRules(whole, 'f');
    const name = 'a\u001b[2J\u202e: "b" #\u{1f468}\u200d\u{1f469} \n- c';
    const hostile = {
      ...rules,
      rules: [...rules.rules, { name, from: [`gone:${name}`], to: ['peer:yes'], protocol: 'any' as const, ports: [] }],
    };
    const text = formatRules(hostile, ' Rules.');
    for (const character of ['\u001b', '\u202e', '\u200d']) expect(text).not.toContain(character);
    expect(parseRules(text, 'f').rules).toEqual(hostile);
    expect(formatRules(rules)).toBe(
      `mode: closed
require_enforcement: true
rules:
  - name: web to db
    from: [tag:web, peer:edge 1]
    to: [peer:db]
    protocol: tcp
    ports: [5432, 8000-8080, 443]
  - name: all to the office
    from: [any]
    to: [route:192.168.50.0/24, cidr:192.168.60.7/32]
tests:
  - from: tag:web
    to: peer:db
    protocol: tcp
    port: 5432
    expect: allow
`,
    );
  });
});

describe('reading a file', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cpn-rules-test-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('names one that is not there, is not text, or has more than 4 MiB', async () => {
    const path = (name: string) => join(folder, name);
    await writeFile(path('bytes'), Buffer.from([0xff, 0xfe]));
    await writeFile(path('large'), `mode: open\n#${'x'.repeat(4 * 1024 * 1024)}`);
    await writeFile(path('good'), 'mode: open\n');
    await expect(readRulesFile(path('none'))).rejects.toThrow(/none" cannot be read \(ENOENT\)/);
    await expect(readRulesFile(folder)).rejects.toThrow(/cannot be read \(EISDIR\)/);
    await expect(readRulesFile(path('bytes'))).rejects.toThrow(/bytes" is not UTF-8 text/);
    await expect(readRulesFile(path('large'))).rejects.toThrow(/large" has more than 4 MiB/);
    expect((await readRulesFile(path('good'))).rules).toMatchObject({ mode: 'open', rules: [] });
  });
});
