import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import * as admin from '../../../src/cli/admin.ts';
import { confirmRules, explainRules, showRules, testRules } from '../../../src/cli/commands/rules.ts';
import { applyRulesFile, editRules } from '../../../src/cli/commands/rules-change.ts';
import * as context from '../../../src/cli/context.ts';
import * as passwords from '../../../src/cli/input/password.ts';
import * as prompts from '../../../src/cli/input/prompt.ts';
import type { Command } from '../../../src/cli/parse/command.ts';
import { parseRules } from '../../../src/cli/rules/rules-file.ts';
import { CommandFailed, Refused } from '../../../src/core/errors/index.ts';
import type { TcpConnection } from '../../../src/core/host-state/actual.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { runCommand } from './run-command.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-rules-test-'));
});
afterAll(() => rm(folder, { recursive: true }));
afterEach(() => vi.restoreAllMocks());

const hostile = '\u001b[2J\u202edb';
const rule = { name: 'web to db', from: ['tag:web'], to: ['peer:db'], protocol: 'tcp', ports: ['5432'] };
const passing = { from: 'tag:web', to: 'peer:db', protocol: 'tcp', port: 5432, expect: 'allow' };
const current = {
  ...{ mode: 'closed', rules: [rule], tests: [passing], require_enforcement: false },
  enforcement: [
    { peer: { id: 1, name: 'web' }, by: 'destination' },
    { peer: { id: 2, name: 'db' }, by: 'nothing' },
  ],
  warnings: [],
};
const preview = {
  gained: [{ from: 'peer:web', to: 'peer:db', protocol: 'tcp', ports: ['5433'] }],
  lost: [{ from: 'any', to: 'peer:db', protocol: 'any', ports: [] }],
  ...{ gained_count: 1, lost_count: 1, complete: true, tests: [], enforcement: [], refused: [], warnings: [] },
};
const failing = { ...passing, passed: false, why: 'the rule "web to db" allows it' };
const network = {
  ...{ id: 7, name: 'office', private_cidr: '10.77.0.0/24', routes: [] },
  peers: [
    { id: 1, name: 'web', address: '10.77.0.2' },
    { id: 2, name: 'db', address: '10.77.0.3' },
  ],
};
const wanted = 'mode: closed\nrules:\n- {name: a, from: [tag:web], to: [peer:db], protocol: tcp, ports: [5433]}\n';
const sent = { ...parseRules(wanted, 'wanted').rules };

interface Scene {
  readonly replies?: Readonly<Record<string, unknown>>;
  /** What the user types at each prompt; without it there is no terminal. */
  readonly answers?: readonly string[];
  readonly connections?: readonly TcpConnection[];
  /** Edits a text, or fails. */
  readonly edit?: (path: string, text: string) => string | Error;
  readonly environment?: Readonly<Record<string, string>>;
}

async function run(command: Command, given: object, { replies = {}, answers, connections = [], ...scene }: Scene = {}) {
  vi.restoreAllMocks();
  const changes: unknown[][] = [];
  const usual: Readonly<Record<string, unknown>> = {
    ...{ describes: true, listNetworks: [network], readNetwork: network, previewRules: preview },
    readRules: { rules: current, etag: '"5"' },
    ...{ setRules: current, confirmRules: current },
  };
  const service = new Proxy({} as Record<string, unknown>, {
    get: (_, name: string) =>
      name === 'then'
        ? undefined
        : async (...input: unknown[]) => {
            if (name === 'setRules' || name === 'confirmRules' || name === 'explainRules')
              changes.push([name, ...input]);
            const reply = { ...usual, ...replies }[name];
            if (reply instanceof Error) throw reply;
            return typeof reply === 'function' ? reply(...input) : reply;
          },
  });
  const left = [...(answers ?? [])];
  const programs: string[][] = [];
  vi.spyOn(admin, 'openAdmin').mockResolvedValue(service as never);
  vi.spyOn(passwords, 'hasTerminal').mockReturnValue(answers !== undefined);
  vi.spyOn(prompts, 'prompt').mockImplementation(async () => left.shift() ?? null);
  vi.spyOn(context, 'readTcpConnections').mockResolvedValue(connections);
  vi.spyOn(context, 'runOnTerminal').mockImplementation(async (program, args) => {
    programs.push([program, ...args]);
    const path = args.at(-1) ?? '';
    const { mode } = await stat(dirname(path));
    expect([mode & 0o077, (await stat(path)).mode & 0o077]).toEqual([0, 0]);
    const edited = scene.edit?.(path, await readFile(path, 'utf8')) ?? '';
    if (edited instanceof Error) throw edited;
    await writeFile(path, edited);
  });
  const outcome = await runCommand(
    command,
    { ...given },
    { ...(scene.environment && { environment: scene.environment }) },
  );
  return { ...outcome, changes, programs, said: outcome.error?.message ?? outcome.stderr };
}

async function write(text: string): Promise<{ file: string }> {
  const file = join(folder, 'rules.yaml');
  await writeFile(file, text);
  return { file };
}

const apply = async (given: object = {}, scene: Scene = {}) =>
  run(applyRulesFile, { ...(await write(wanted)), ...given }, scene);
const applied = [['setRules', 7, sent, '"5"']];

describe('each command', () => {
  it.each<[Command, object]>([
    [showRules, {}],
    [testRules, {}],
    [explainRules, { from: 'web', to: 'db' }],
    [confirmRules, {}],
  ])('$name needs a control plane with rules', async (command, given) => {
    const replies = { describes: false };
    expect((await run(command, given, { replies })).said).toContain('this control plane does not support rules');
    expect((await apply({}, { replies })).said).toContain('this control plane does not support rules');
  });
});

describe('cpn rules show', () => {
  it('shows the mode, rules, tests and where nothing enforces them', async () => {
    const { stdout, stderr, exitCode } = await run(showRules, {});
    expect(exitCode).toBe(0);
    expect(stdout).toContain('closed: what no rule allows is denied');
    expect(stdout).toMatch(/web to db {2}tag:web {2}peer:db {2}tcp 5432/);
    expect(stdout).toMatch(/allow {2}tag:web {2}peer:db {2}tcp 5432/);
    expect(stdout).toContain('nothing enforces the rules at 1 of 2 peers: db');
    expect(stdout).not.toContain('destination');
    expect(stderr).toBe('');
    expect((await run(showRules, { all: true })).stdout).toMatch(/1 +web +destination\n2 +db +nothing/);
  });

  it('marks removed peers, an open mode, and rules that are not confirmed', async () => {
    const show = async (more: object) => {
      const { stdout, stderr } = await run(
        showRules,
        {},
        { replies: { readRules: { rules: { ...current, ...more } } } },
      );
      return stdout + stderr;
    };
    const gone = [{ ...rule, to: ['gone:db', 'peer:new'] }];
    expect(await show({ rules: gone })).toContain('removed peers, which select nothing: gone:db');
    expect(await show({ mode: 'open' })).toContain(
      'open: every peer reaches every peer and route; the rules are stored, and not applied',
    );
    expect(await show({ rules: [] })).toContain('there is no rule');
    expect(await show({ enforcement: current.enforcement.slice(0, 1) })).toContain('enforced at every peer');
    expect(await show({ require_enforcement: true })).toContain('are no destination');
    expect(await show({ warnings: ['no peer has the tag admn (rule "a")'] })).toContain(
      '\nno peer has the tag admn (rule "a")',
    );
    expect(await show({ confirm_until: '2030-01-01T00:00:00Z' })).toContain(
      'the earlier rules return at 2030-01-01T00:00:00Z; to keep these, type: cpn rules confirm 7',
    );
    const many = Array.from({ length: 9 }, (_, at) => `peer:p${at}`);
    expect(await show({ rules: [{ ...rule, from: many }] })).toContain('peer:p5 and 3 more');
  });

  it('prints as JSON what the service sent, and as YAML a file for apply', async () => {
    expect(JSON.parse((await run(showRules, { json: true })).stdout)).toEqual(current);
    const { mode, rules, tests, require_enforcement } = current;
    const { stdout } = await run(showRules, { yaml: true });
    expect(parseRules(stdout, 'shown').rules).toEqual({ mode, rules, tests, require_enforcement });
    expect((await run(showRules, { yaml: true, json: true })).said).toContain('exclude each other');
  });

  it('has no text of the network raw on the terminal', async () => {
    const wild = {
      ...{ mode: 'closed', tests: [{ ...passing, from: `peer:${hostile}` }], require_enforcement: false },
      rules: [{ ...rule, name: hostile, from: [`gone:${hostile}`] }],
      enforcement: [{ peer: { id: 1, name: hostile }, by: 'nothing' }],
      warnings: [hostile],
    };
    for (const given of [{}, { all: true }, { yaml: true }, { json: true }]) {
      const { stdout } = await run(showRules, given, { replies: { readRules: { rules: wild } } });
      expect(stdout).toContain('db');
      for (const character of ['\u001b', '\u202e']) expect(stdout).not.toContain(character);
    }
  });
});

describe('cpn rules apply', () => {
  it('shows who gains and loses what, and replaces the rules that it showed', async () => {
    const { stdout, exitCode, changes } = await apply({ yes: true });
    expect(stdout).toMatch(/Gained \(1\):\n {2}\+ {2}peer:web {2}→ {2}peer:db {2}tcp 5433\n/);
    expect(stdout).toMatch(/Lost \(1\):\n {2}- {2}any {2}→ {2}peer:db {2}all traffic\n/);
    expect(stdout).toContain('applied the rules: the network is closed');
    expect([exitCode, changes]).toEqual([0, applied]);
  });

  it('cuts long lists, and counts all', async () => {
    const gained = Array.from({ length: 60 }, (_, at) => ({
      ...preview.gained[0],
      ports: [`${at + 1}`],
      to: `peer:p${at}`,
    }));
    const { stdout } = await apply(
      { 'dry-run': true },
      { replies: { previewRules: { ...preview, gained, gained_count: 5000 } } },
    );
    expect(stdout).toContain('Gained (5000)');
    expect(stdout).toContain('peer:p39');
    expect(stdout).not.toContain('peer:p40');
    expect(stdout).toContain('and 4960 more; --json lists them');
  });

  it('shows where a comparison is not complete', async () => {
    const nothing = { ...preview, gained: [], lost: [], gained_count: 0, lost_count: 0 };
    const shown = async (complete: boolean) =>
      (await apply({ 'dry-run': true }, { replies: { previewRules: { ...nothing, complete } } })).stdout;
    expect(await shown(true)).toBe('No connection is gained or lost.\n');
    expect(await shown(false)).toMatch(/^There may be more: /);
  });

  it('joins the pairs that change the same', async () => {
    const change = (from: string, to: string, protocol: string, ports: string[] = []) => ({
      from,
      to,
      protocol,
      ports,
    });
    const lost = ['peer:a', 'peer:b'].flatMap((from) =>
      ['peer:c', 'peer:d'].flatMap((to) => [change(from, to, 'tcp', ['22', '80-90']), change(from, to, 'other')]),
    );
    const others = Array.from({ length: 6 }, (_, at) => change(`peer:p${at}`, 'any', 'any'));
    const replies = { previewRules: { ...preview, lost: [...lost, ...others], lost_count: 20 } };
    const { stdout } = await apply({ 'dry-run': true }, { replies });
    expect(stdout.replaceAll(/ +/g, ' ')).toContain(
      [
        'Lost (20):',
        ' - peer:a, peer:b → peer:c, peer:d tcp 22, 80-90; other protocols',
        ' - peer:p0, peer:p1, peer:p2, peer:p3 and 2 more → any all traffic',
        ' and 6 more; --json lists them',
      ].join('\n'),
    );
  });

  it('shows that echo requests between peers stay allowed', async () => {
    const icmp = (from: string) => ({ from, to: 'peer:db', protocol: 'icmp', ports: [] });
    const lost = ['peer:web', 'route:192.168.50.0/24', 'any'].map(icmp);
    const replies = { previewRules: { ...preview, lost, lost_count: 3 } };
    const { stdout } = await apply({ 'dry-run': true }, { replies });
    expect(stdout).toMatch(/peer:web +→ {2}peer:db {2}icmp except echo\n/);
    expect(stdout).toMatch(/any +→ {2}peer:db {2}icmp\n/);
  });

  it('refuses rules that fail a test, and shows what decides', async () => {
    const replies = { previewRules: { ...preview, tests: [{ ...passing, passed: true, why: '' }, failing] } };
    const { stdout, stderr, exitCode, changes } = await apply({ yes: true }, { replies });
    expect([exitCode, changes]).toEqual([1, []]);
    expect(stdout).toContain('failed: 1 of 2 tests');
    expect(stdout).toContain('tag:web → peer:db, tcp 5432: expected allow; the rule "web to db" allows it');
    expect(stderr).toContain('nothing was changed');
  });

  it('changes nothing with --dry-run, without a terminal, and on a no', async () => {
    expect(await apply({ 'dry-run': true, yes: true })).toMatchObject({
      ...{ exitCode: 0, changes: [] },
      stderr: 'nothing was changed: this was a dry run\n',
    });
    const noTerminal = await apply();
    expect([noTerminal.error?.name, noTerminal.changes]).toEqual(['WrongUsage', []]);
    expect(noTerminal.stdout).toContain('Gained (1)');
    expect(noTerminal.said).toContain('Apply these rules? There is no terminal to confirm on');
    expect(await apply({}, { answers: ['n'] })).toMatchObject({ exitCode: 1, changes: [] });
    expect(await apply({}, { answers: ['y'] })).toMatchObject({ exitCode: 0, changes: applied });
  });

  it('sends nothing where the network has these rules, unless they are not confirmed', async () => {
    const { rules, tests, mode } = current;
    const same = await write(JSON.stringify({ mode, rules, tests }));
    const { stderr, exitCode, changes } = await run(applyRulesFile, { ...same, yes: true });
    expect([exitCode, changes]).toEqual([0, []]);
    expect(stderr).toContain('nothing was changed: the network has these rules');
    const readRules = { rules: { ...current, confirm_until: '2030-01-01T00:00:00Z' }, etag: '"5"' };
    expect((await run(applyRulesFile, { ...same, yes: true }, { replies: { readRules } })).changes).toHaveLength(1);
  });

  it.each(['previewRules', 'setRules'])(
    'names the line of a rule that %s refuses, as of a mistake in the file',
    async (name) => {
      const refusal = (...fields: string[]) =>
        new Refused(422, 'the rules', 'x', null, {
          fields: fields.map((field) => ({ field, rule: '"peer:db" is no peer (rule "a")' })),
        });
      const refused = async (...fields: string[]) =>
        (await apply({ yes: true }, { replies: { [name]: refusal(...fields) } })).error;
      const error = await refused('rules.0.to.0');
      expect([error?.name, error?.message]).toEqual([
        'InvalidValue',
        `"${folder}/rules.yaml", line 3: rules[0].to[0] "peer:db" is no peer (rule "a")`,
      ]);
      expect((await refused('tests.3', 'rules.0'))?.message).toMatch(
        /line \d+: tests\[3\] .*; this is the first of 2 mistakes$/,
      );
      expect((await refused('confirm_within_seconds'))?.name).toBe('Refused');
      const replies = { previewRules: refusal('rules.0.to.0') };
      expect((await run(testRules, await write(wanted), { replies })).said).toContain('line 3: rules[0].to[0]');
      expect((await run(testRules, {}, { replies })).error?.name).toBe('Refused');
    },
  );

  it('fails where the rules were changed meanwhile', async () => {
    const setRules = new Refused(412, 'setting the rules', 'changed', 'run it again');
    expect((await apply({ yes: true }, { replies: { setRules } })).said).toContain('run it again');
  });

  it('warns of another mode, of peers without enforcement, and of connections that it refuses', async () => {
    const warned = async (file: string, more: object, given: object = {}, replies: object = {}) => {
      const scene = { replies: { previewRules: { ...preview, ...more }, ...replies } };
      return (await run(applyRulesFile, { ...(await write(file)), 'dry-run': true, ...given }, scene)).stderr;
    };
    const open = { readRules: { rules: { ...current, mode: 'open' }, etag: '"5"' } };
    expect(await warned(wanted, {}, {}, open)).toContain(
      'warning: this closes the network: connections that no rule allows end, and no new one begins; connections that a LAN began',
    );
    expect(await warned('mode: open\n', {})).toMatch(/warning: this opens the network.*; connections that a LAN began/);
    expect(await warned(wanted, {})).not.toContain('warning');
    const misspelt = { warnings: ['no peer has the tag admn (rule "a")'] };
    expect(await warned(wanted, misspelt)).toContain('warning: no peer has the tag admn (rule "a")\n');
    const enforcement = [{ peer: { id: 2, name: 'db' }, by: 'nothing' }];
    expect(await warned(wanted, { enforcement })).toContain(
      'nothing enforces the rules at db; every peer still reaches them; --require-enforcement makes them no destination',
    );
    expect(await warned(wanted, { enforcement }, { 'require-enforcement': true })).toContain('no peer reaches them');
    const refused = [{ from: 'route:192.168.50.0/24', to: 'peer:db', why: 'db does not accept the route' }];
    expect(await warned(wanted, { refused })).toContain(
      'route:192.168.50.0/24 → peer:db is refused, although a rule allows it: db does not accept the route',
    );
  });

  it('warns of connections of this machine that end', async () => {
    const connections = [
      { from: '10.77.0.2' as Address, to: '10.77.0.3' as Address, port: 22 },
      { from: '10.77.0.3' as Address, to: '10.77.0.2' as Address, port: 80 },
    ];
    const text = 'warning: connections of this machine that end: 10.77.0.2 → 10.77.0.3 port 22\n';
    expect((await apply({ yes: true }, { connections })).stderr).toBe(text);
    const cut = { previewRules: { ...preview, lost_count: 2000 } };
    expect((await apply({ yes: true }, { connections, replies: cut })).stderr).toContain(
      'that may end: 10.77.0.2 → 10.77.0.3 port 22, 10.77.0.3 → 10.77.0.2 port 80',
    );
    const unknown = { previewRules: { ...preview, lost: [], lost_count: 0, complete: false } };
    expect((await apply({ yes: true }, { connections, replies: unknown })).stderr).toContain('that may end');
    const none = { previewRules: { ...preview, lost: [], lost_count: 0 } };
    expect((await apply({ yes: true }, { connections, replies: none })).stderr).toBe('');
  });

  it('requires enforcement by the file or by the flag, which wins', async () => {
    const request = async (file: string, given: object) =>
      (await run(applyRulesFile, { ...(await write(file)), yes: true, ...given })).changes[0]?.[2];
    expect(await request(wanted, {})).toMatchObject({ require_enforcement: false });
    expect(await request(wanted, { 'require-enforcement': true })).toMatchObject({ require_enforcement: true });
    const required = `${wanted}require_enforcement: true\n`;
    expect(await request(required, {})).toMatchObject({ require_enforcement: true });
    expect(await request(required, { 'require-enforcement': false })).toMatchObject({ require_enforcement: false });
  });

  describe('with --confirm-within', () => {
    const until = '2030-01-01T00:00:00Z';
    const replies = { setRules: { ...current, confirm_until: until } };
    const within = { 'confirm-within': '60s' };

    it('sends the time, and prints the command that keeps the rules', async () => {
      const { changes, stderr } = await apply({ ...within, yes: true }, { replies, answers: [] });
      expect(changes).toEqual([['setRules', 7, { ...sent, confirm_within_seconds: 60 }, '"5"']]);
      expect(stderr).toContain(`the earlier rules return at ${until}; to keep these, type: cpn rules confirm 7`);
    });

    it('prompts on a terminal, where the rules are kept on a yes alone', async () => {
      const kept = await apply(within, { replies, answers: ['y', 'y'] });
      expect(kept.changes[1]).toEqual(['confirmRules', 7]);
      const left = await apply(within, { replies, answers: ['y', 'n'] });
      expect([left.changes.length, left.exitCode]).toEqual([1, 0]);
    });

    it.each(['9s', '61m', '500ms', '10500ms', 'soon'])('%s is refused before any request', async (time) => {
      const { error, changes } = await apply({ 'confirm-within': time, yes: true });
      expect([error?.name, changes]).toEqual(['InvalidValue', []]);
    });
  });

  it('prints one JSON document', async () => {
    const done = await apply({ yes: true, json: true });
    expect(JSON.parse(done.stdout)).toEqual({ applied: true, preview, rules: current });
    const tried = await apply({ 'dry-run': true, json: true });
    expect(JSON.parse(tried.stdout)).toEqual({ applied: false, preview, rules: null });
  });

  it('prints nothing of a preview raw', async () => {
    const previewRules = {
      ...preview,
      ...{ gained: [{ ...preview.gained[0], from: `peer:${hostile}` }], tests: [{ ...failing, why: hostile }] },
      enforcement: [{ peer: { id: 1, name: hostile }, by: 'nothing' }],
      refused: [{ from: hostile, to: hostile, why: hostile }],
      warnings: [hostile],
    };
    const { stdout, stderr } = await apply({ yes: true }, { replies: { previewRules } });
    for (const character of ['\u001b', '\u202e']) expect(stdout + stderr).not.toContain(character);
  });
});

describe('cpn rules edit', () => {
  const change = (_: string, text: string) => text.replace('5432', '5433');

  it('opens the rules in the editor, without a shell, and applies them as apply does', async () => {
    let path = '';
    const edit = (at: string, text: string) => {
      path = at;
      expect(text).toContain('# Selectors: peer:NAME');
      return change(at, text);
    };
    const scene = { edit, answers: ['y'], environment: { EDITOR: 'nano --softwrap' } };
    const { changes, programs, exitCode, stdout } = await run(editRules, {}, scene);
    expect(programs).toEqual([['nano', '--softwrap', path]]);
    expect(stdout).toContain('Gained (1)');
    expect(changes).toEqual([
      ['setRules', 7, expect.objectContaining({ rules: [{ ...rule, ports: ['5433'] }] }), '"5"'],
    ]);
    expect([exitCode, existsSync(dirname(path))]).toEqual([0, false]);
  });

  it.each<[object, string]>([
    [{ VISUAL: 'emacs', EDITOR: 'nano' }, 'emacs'],
    [{ VISUAL: '', EDITOR: 'nano' }, 'nano'],
    [{}, 'vi'],
  ])('with %j runs %s', async (environment, program) => {
    const scene = { edit: (_: string, text: string) => text, answers: [], environment: { ...environment } };
    const { programs, stderr, changes } = await run(editRules, {}, scene);
    expect([programs[0]?.[0], changes]).toEqual([program, []]);
    expect(stderr).toContain('nothing was changed');
    expect(existsSync(programs[0]?.[1] ?? '')).toBe(false);
  });

  it.each<[string, Scene, string]>([
    ['does not parse', { edit: () => 'mode: shut', answers: ['y'] }, 'must be open or closed'],
    ['is declined', { edit: change, answers: ['n'] }, 'nothing was done'],
    [
      'fails a test',
      { edit: change, answers: ['y'], replies: { previewRules: { ...preview, tests: [failing] } } },
      'nothing was changed',
    ],
    [
      'is refused',
      { edit: change, answers: ['y'], replies: { setRules: new Refused(412, 'setting', 'changed', null) } },
      'changed',
    ],
  ])('keeps and names an edit that %s', async (_, scene, problem) => {
    const { stderr, error, programs } = await run(editRules, {}, scene);
    const path = programs[0]?.at(-1) ?? '';
    expect(`${error?.message ?? ''}${stderr}`).toContain(problem);
    expect(stderr).toContain(`your edit is in ${path}; to apply it, type: cpn rules apply ${path}`);
    expect(existsSync(path)).toBe(true);
    await rm(dirname(path), { recursive: true });
  });

  it('without a change leaves no file, also where the editor fails', async () => {
    const edit = () => new CommandFailed('vi', 1, '');
    const { error, programs, stderr } = await run(editRules, {}, { edit, answers: [] });
    expect([error?.name, existsSync(programs[0]?.at(-1) ?? ''), stderr]).toEqual(['CommandFailed', false, '']);
  });

  it('needs a terminal', async () => {
    const { said, programs } = await run(editRules, {});
    expect([said, programs]).toEqual([expect.stringContaining('an editor needs a terminal'), []]);
  });
});

describe('cpn rules test', () => {
  it('runs the tests of the network or of a file, and fails where one does', async () => {
    const previews: unknown[] = [];
    const replies = (tests: object[]) => ({
      previewRules: (_: number, given: unknown) => {
        previews.push(given);
        return { ...preview, tests };
      },
    });
    const passed = await run(testRules, {}, { replies: replies([{ ...passing, passed: true, why: 'a' }]) });
    expect([passed.exitCode, passed.stdout]).toEqual([0, 'passed: the test\n']);
    const failed = await run(testRules, await write(wanted), { replies: replies([failing]) });
    expect([failed.exitCode, failed.stdout]).toEqual([1, expect.stringContaining('failed: 1 of 1 tests')]);
    const none = await run(testRules, {}, { replies: replies([]) });
    expect([none.exitCode, none.stderr]).toEqual([0, 'there is no test\n']);
    const asJson = await run(testRules, { json: true }, { replies: replies([failing]) });
    expect([asJson.exitCode, JSON.parse(asJson.stdout)]).toEqual([1, { tests: [failing] }]);
    const { enforcement: _, warnings: __, ...stored } = current;
    expect(previews).toEqual([stored, sent, stored, stored]);
    expect(passed.changes).toEqual([]);
  });
});

describe('cpn rules why', () => {
  const decision = {
    ...{ from: 'peer:web', to: 'peer:db', protocol: 'tcp', port: 5432, verdict: 'allow', rule: 'web to db' },
    why: 'the rule allows it',
    points: [
      { peer: { id: 2, name: 'db' }, by: 'destination' },
      { peer: { id: 3, name: 'edge' }, by: 'connector' },
    ],
  };
  const denied = {
    ...decision,
    verdict: 'deny',
    rule: null,
    why: 'no rule allows it',
    points: [{ ...decision.points[0], by: 'nothing' }],
  };
  const why = (given: object, explained: object = decision) =>
    run(explainRules, { from: 'web', to: 'db', port: '5432', ...given }, { replies: { explainRules: explained } });

  it('names the rule and the hosts that decide', async () => {
    const { stdout, exitCode } = await why({});
    expect(exitCode).toBe(0);
    expect(stdout).toBe(
      [
        'peer:web → peer:db, tcp 5432: allowed by the rule "web to db"',
        '  enforced at db, the destination',
        '  enforced at edge, the connector\n',
      ].join('\n'),
    );
    const no = await why({}, denied);
    expect([no.exitCode, no.stdout]).toEqual([0, expect.stringContaining('tcp 5432: denied\n  no rule allows it\n')]);
    expect(no.stdout).toContain('nothing enforces the rules at db');
    const partly = { ...denied, port: undefined, ports: ['22', '8000-8080'], why: 'the rules allow these alone' };
    expect((await why({ port: undefined }, partly)).stdout).toContain(
      'peer:web → peer:db, tcp: allowed for tcp 22, 8000-8080 alone\n  the rules allow these alone\n',
    );
    expect(JSON.parse((await why({ json: true })).stdout)).toEqual(decision);
  });

  it('exits with 3 for what is denied, with --check', async () => {
    expect([(await why({ check: true })).exitCode, (await why({ check: true }, denied)).exitCode]).toEqual([0, 3]);
  });

  it.each<[object, object]>([
    [{}, { from: 'peer:web', to: 'peer:db', protocol: 'tcp', port: 5432 }],
    [
      { from: '10.77.0.2', to: 'tag:web', port: undefined },
      { from: '10.77.0.2', to: 'tag:web', protocol: 'tcp' },
    ],
    [
      { from: 'any', to: 'route:192.168.50.0/24', protocol: 'udp', port: '53' },
      { from: 'any', to: 'route:192.168.50.0/24', protocol: 'udp', port: 53 },
    ],
    [
      { to: 'my:host', port: undefined },
      { from: 'peer:web', to: 'peer:my:host', protocol: 'tcp' },
    ],
  ])('with %j sends %j', async (given, query) => {
    expect((await why(given)).changes).toEqual([['explainRules', 7, query]]);
  });

  it.each([{ port: '0' }, { port: '65536' }, { port: 'ssh' }, { protocol: 'sctp' }, { protocol: 'icmp' }])(
    'with %j is refused before any request',
    async (given) => {
      const { error, changes } = await why(given);
      expect([error?.name, changes]).toEqual([expect.stringMatching(/WrongUsage|InvalidValue/), []]);
    },
  );
});

describe('cpn rules confirm', () => {
  it('keeps the rules, and states where none wait', async () => {
    const readRules = { rules: { ...current, confirm_until: '2030-01-01T00:00:00Z' }, etag: '"5"' };
    const { changes, stderr } = await run(confirmRules, { network: 'office' }, { replies: { readRules } });
    expect([changes, stderr]).toEqual([[['confirmRules', 7]], 'confirmed the rules\n']);
    expect((await run(confirmRules, {})).stderr).toBe('nothing was changed: no rules wait for a confirmation\n');
    expect(JSON.parse((await run(confirmRules, { json: true })).stdout)).toEqual(current);
  });
});
