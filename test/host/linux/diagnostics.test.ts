import { expect, it } from 'vitest';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { linuxInspector } from '../../../src/host/linux/linux-inspector.ts';
import type { Run } from '../../../src/host/process/run.ts';
import { portableInspector } from '../../../src/host/wg-quick/portable-inspector.ts';

it('the diagnostics of a host show links, routes of both families, rules and log, and no key', async () => {
  const calls: (readonly [string, number | undefined])[] = [];
  const run: Run = async (tool, args, options) => {
    calls.push([[tool, ...args].join(' '), options?.deadlineMs]);
    return 'text';
  };
  const found = await linuxInspector(run).diagnostics();
  expect([...found.keys()].toSorted()).toEqual([
    ...['ip-address.txt', 'ip-netconf.txt', 'ip-route-6.txt', 'ip-route.txt', 'ip-rule.txt'],
    ...['journal.txt', 'nft-ruleset.txt', 'wg-show.txt'],
  ]);
  const commands = calls.map(([command]) => command);
  for (const command of ['wg show', 'ip route show table all', 'ip -6 route show table all', 'nft list ruleset'])
    expect(commands).toContain(command);
  expect(commands.join('\n')).toMatch(/^journalctl --unit cpn .*--no-pager/m);
  // These print private keys.
  expect(commands.join('\n')).not.toMatch(/dump|showconf|private-key|preshared/);
  // A tool that hangs must not hold up the others.
  expect(calls.map(([, deadlineMs]) => deadlineMs)).toEqual(calls.map(() => 10_000));
});

it('a tool that fails is one file of the diagnostics, and the newest part of a long log is kept', async () => {
  const megabytes = 2 * 1024 * 1024;
  const run: Run = async (tool) => {
    if (tool === 'nft') throw new CommandFailed('nft list ruleset', 1, 'Operation not permitted');
    return tool === 'journalctl' ? `${'old '.repeat(megabytes / 4)}newest\n` : '';
  };
  const found = await linuxInspector(run).diagnostics();
  expect(found.get('nft-ruleset.txt')).toMatch(/^not available: .*Operation not permitted/);
  const journal = found.get('journal.txt') ?? '';
  expect([journal.length, journal.endsWith('newest\n')]).toEqual([megabytes, true]);
  const broken: Run = async () => Promise.reject(new TypeError('a bug'));
  await expect(linuxInspector(broken).diagnostics()).rejects.toThrow('a bug');
});

it('a host with wg-quick alone has one diagnostic, without a key, and names what it does not examine', async () => {
  const calls: string[] = [];
  const run: Run = async (tool, args) => {
    calls.push([tool, ...args].join(' '));
    throw new CommandFailed('wg', 1, 'Permission denied');
  };
  const inspector = portableInspector({ run, manager: { tools: [] }, files: {} } as never);
  expect([...(await inspector.diagnostics())]).toEqual([
    ['wg-show.txt', expect.stringMatching(/^not available: .*Permission denied/)],
  ]);
  expect(calls).toEqual(['wg show']);
  expect([...inspector.unexamined].toSorted()).toEqual(['forwarding', 'kernel', 'managers', 'mtu', 'ports']);
});
