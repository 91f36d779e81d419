import { randomBytes } from 'node:crypto';
import { chmod, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { AdminShell, startPlane } from './admin-shell.ts';

let shell: AdminShell;
let plane: Awaited<ReturnType<typeof startPlane>>;

beforeAll(async () => {
  shell = await AdminShell.open();
  plane = await startPlane(shell);
  await shell.output(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24', '--route', '192.168.50.0/24']);
  await enrol('web-1', ['--tag', 'web']);
  await enrol('laptop');
  await enrol('db');
  await enrol('phone', [], false);
});

afterAll(async () => {
  await plane?.server.stop();
  await shell?.close();
});

/** Brings a peer into the network without a host behind it. */
async function enrol(name: string, flags: readonly string[] = [], enforces = true): Promise<void> {
  const key = await shell.write(
    'key',
    (await shell.output(['key', 'create', 'office', '--name', name, ...flags])).trim(),
  );
  const publicKey = randomBytes(32).toString('base64');
  const fields = [`enrollment_token=@${key}`, `name=${name}`, `public_key=${publicKey}`, `enforces_rules=${enforces}`];
  await shell.output(['api', 'POST', '/api/networks/enroll', ...fields.flatMap((field) => ['--field', field])]);
}

const rules = (name: string, more = '') => `mode: closed
rules:
  - name: ${name}
    from: [tag:web]
    to: [peer:db]
    protocol: tcp
    ports: [5432]
${more}`;
const apply = async (text: string, ...flags: string[]) =>
  shell.cpn(['rules', 'apply', await shell.write('rules.yaml', text), ...flags]);
const show = () => shell.output(['rules', 'show']);

describe('tags', () => {
  it('come from the key, and are changed by an administrator', async () => {
    const tagsOf = async (name: string) => {
      const { peers } = await shell.json(['peer', 'list', 'office']);
      return peers.find((peer: { name: string }) => peer.name === name).tags ?? [];
    };
    expect(await tagsOf('web-1')).toEqual(['web']);
    expect(await shell.json(['peer', 'update', 'office', 'laptop', '--tag', 'admin', '--tag', 'web'])).toMatchObject({
      tags: ['admin', 'web'],
    });
    await shell.output(['peer', 'update', 'office', 'laptop', '--no-tags']);
    expect(await tagsOf('laptop')).toEqual([]);
    expect(await shell.output(['peer', 'list', 'office'])).toMatch(/tags/);
    expect(await shell.output(['key', 'list', 'office', '--all'])).toContain('tag:web');
  });
});

describe('cpn rules', () => {
  it('starts open, and changes nothing by a dry run or without a yes', async () => {
    expect(await show()).toBe('open: every peer reaches every peer and route\n');
    const tried = await apply(rules('web to db'), '--dry-run');
    expect(tried).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('this closes the network') });
    expect(tried.stdout).toMatch(/Lost \(\d+\):/);
    expect(tried.stderr).toContain('nothing enforces the rules at phone; every peer still reaches them');
    const asked = await apply(rules('web to db'));
    expect(asked).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('There is no terminal') });
    expect((await shell.json(['rules', 'show'])).mode).toBe('open');
  });

  it('refuses a file with an unknown field, by its line, and rules of which a name does not exist', async () => {
    const unknown = await apply(rules('web to db', '    port: 22\n'), '--yes');
    expect(unknown).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('line 8: rules[0].port is no field'),
    });
    const nameless = await apply(rules('web to db').replace('peer:db', 'peer:dbb'), '--yes');
    expect(nameless.exitCode).toBe(2);
    expect(nameless.stderr).toContain('line 5: rules[0].to[0] "peer:dbb" is no peer of the network');
    expect(nameless.stderr).toContain('(rule "web to db")');
    expect((await shell.json(['rules', 'show'])).mode).toBe('open');
  });

  it('refuses rules that fail their tests', async () => {
    const test = 'tests:\n  - {from: tag:web, to: peer:db, port: 22, expect: allow}\n';
    const failed = await apply(rules('web to db', test), '--yes');
    expect([failed.exitCode, failed.stdout]).toEqual([1, expect.stringContaining('failed: 1 of 1 tests')]);
    const file = `${shell.folder}/rules.yaml`;
    expect((await shell.cpn(['rules', 'test', file])).exitCode).toBe(1);
    expect((await shell.json(['rules', 'show'])).mode).toBe('open');
  });

  it('applies rules, which show what they are, what enforces them, and why', async () => {
    const test = 'tests:\n  - {from: tag:web, to: peer:db, port: 22, expect: deny}\n';
    const applied = await apply(rules('web to db', test), '--yes', '--network', 'office');
    expect([applied.exitCode, applied.stdout]).toEqual([0, expect.stringContaining('applied the rules')]);
    const shown = await show();
    expect(shown).toContain('closed: what no rule allows is denied');
    expect(shown).toMatch(/web to db {2}tag:web {2}peer:db {2}tcp 5432/);
    expect(shown).toContain('nothing enforces the rules at 1 of 4 peers: phone');
    expect((await shell.cpn(['rules', 'test'])).stdout).toBe('passed: the test\n');
    expect(await shell.output(['peer', 'list', 'office', '--wide'])).toMatch(/phone .*nothing/);

    const allowed = await shell.output(['rules', 'why', 'web-1', 'db', '5432', '--check']);
    expect(allowed).toContain('peer:web-1 → peer:db, tcp 5432: allowed by the rule "web to db"');
    expect(allowed).toContain('enforced at db, the destination');
    const denied = await shell.cpn(['rules', 'why', '10.77.0.2', 'peer:db', '22', '--check']);
    expect([denied.exitCode, denied.stdout]).toEqual([3, expect.stringContaining('denied')]);
    expect((await shell.cpn(['rules', 'why', 'laptop', 'db'])).exitCode).toBe(0);
  });

  it('reads back what it prints, also the name of a peer that is gone', async () => {
    const yaml = await shell.output(['rules', 'show', '--yaml']);
    const same = await apply(yaml, '--yes');
    expect([same.exitCode, same.stderr]).toEqual([0, expect.stringContaining('the network has these rules')]);

    await shell.output(['peer', 'remove', 'office', 'db', '--yes', '--wait', '0']);
    const gone = await shell.output(['rules', 'show', '--yaml']);
    expect(gone).toContain('to: [gone:db]');
    expect(await show()).toContain('removed peers, which select nothing: gone:db');
    await enrol('db');
    expect((await shell.json(['rules', 'show'])).rules[0].to).toEqual(['gone:db']);
    expect((await apply(gone, '--yes', '--require-enforcement')).exitCode).toBe(0);
    expect((await shell.json(['rules', 'show'])).require_enforcement).toBe(true);
  });

  it('prompts on a terminal, and a second time where the rules need a confirmation', async () => {
    const file = await shell.write('rules.yaml', rules('confirmed'));
    const declined = await shell.type(['rules', 'apply', file], [[/Apply these rules\?/, 'n\r']]);
    expect(declined.exitCode).toBe(1);
    const within = ['rules', 'apply', file, '--confirm-within', '60m'];
    const kept = await shell.type(within, [
      [/Apply these rules\?/, 'y\r'],
      [/Keep these rules\?/, 'y\r'],
    ]);
    expect([kept.exitCode, kept.stdout]).toEqual([0, expect.stringContaining('confirmed the rules')]);
    expect((await shell.json(['rules', 'show'])).confirm_until).toBeUndefined();

    const pending = await apply(rules('pending'), '--yes', '--confirm-within', '60m');
    expect(pending.stderr).toMatch(/the earlier rules return at \S+; to keep these, type: cpn rules confirm 1/);
    expect((await shell.cpn(['rules', 'show'])).stderr).toContain('the earlier rules return at');
    expect((await shell.cpn(['rules', 'confirm'])).exitCode).toBe(0);
    expect((await shell.json(['rules', 'show'])).rules[0].name).toBe('pending');
  });

  it('are edited, and an edit is kept where the rules were changed meanwhile', async () => {
    const editor = async (script: string) => {
      const path = await shell.write('editor', `#!/bin/sh\n${script}\n`);
      await chmod(path, 0o700);
      // An edit that is kept goes with the folder of the test.
      return { EDITOR: path, TMPDIR: shell.folder };
    };
    const rename = (name: string) => `sed -i 's/name: .*/name: ${name}/' "$1"`;
    const edited = await shell.type(
      ['rules', 'edit'],
      [[/Apply these rules\?/, 'y\r']],
      await editor(rename('edited')),
    );
    expect([edited.exitCode, edited.stdout]).toEqual([0, expect.stringContaining('applied the rules')]);
    expect((await shell.json(['rules', 'show'])).rules[0].name).toBe('edited');

    const other = await shell.write('other.yaml', rules('meanwhile'));
    const program = await builtProgram();
    const both = await editor(`'${program}' rules apply '${other}' --yes >/dev/null 2>&1; ${rename('lost')}`);
    const late = await shell.type(['rules', 'edit'], [[/Apply these rules\?/, 'y\r']], both);
    expect([late.exitCode, late.stdout]).toEqual([4, expect.stringContaining('the rules were changed meanwhile')]);
    const [, kept = ''] = /your edit is in (\S+); to apply it/.exec(late.stdout) ?? [];
    expect(await readFile(kept, 'utf8')).toContain('name: lost');
    expect((await shell.json(['rules', 'show'])).rules[0].name).toBe('meanwhile');
  });

  it('opens the network again', async () => {
    const opened = await apply('mode: open\n', '--yes', '--json');
    expect(JSON.parse(opened.stdout)).toMatchObject({ applied: true, rules: { mode: 'open', rules: [] } });
    expect(opened.stderr).toContain('this opens the network');
    expect(await shell.output(['peer', 'list', 'office'])).not.toContain('enforced by');
  });
});
