import { describe, expect, it } from 'vitest';
import { checkAnswers } from '../../../src/core/doctor/check-answers.ts';
import { checkOwnClock, checkServiceClock } from '../../../src/core/doctor/check-clock.ts';
import { checkDaemon, checkFile, type FileFacts } from '../../../src/core/doctor/check-files.ts';
import {
  checkKernel,
  checkManagers,
  checkPrivilege,
  checkSpace,
  checkTools,
  type ToolFound,
} from '../../../src/core/doctor/check-host.ts';
import { checkOuterEchoes, checkTunnelEchoes } from '../../../src/core/doctor/check-mtu.ts';
import {
  checkConflicts,
  checkForwarding,
  checkPorts,
  checkRules,
  type MappedNetwork,
} from '../../../src/core/doctor/check-network.ts';
import { firewallMarks } from '../../../src/core/forward/own-table.ts';
import type { KernelRoute } from '../../../src/core/host-state/kernel-route.ts';
import { makeRule } from '../../../src/core/host-state/policy-rule.ts';
import { allForwardingKey } from '../../../src/core/host-state/sysctl-keys.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { problem } from '../../../src/core/problems/problem.ts';
import { tunnelRule, tunnelRules } from '../../../src/core/routing/tunnel-rules.ts';
import {
  address,
  bare,
  desireFor,
  dialled,
  keyPair,
  network,
  options,
  peer,
  prefix,
  usualConstraints,
} from '../samples.ts';

const tool = (name: string, path: string | null = `/usr/bin/${name}`): ToolFound => {
  return { tool: name, path, version: path && '1.0', remedy: `apt install ${name}` };
};
const ready = { forwards: false, pings: false };

describe('answers to clients outside a full tunnel', () => {
  const laptop = peer(3, { type: 'admin_device' });
  const map = network([peer(1, { type: 'connector', endpoint: dialled(1) }), laptop], {
    routes: [prefix('0.0.0.0/0')],
  });
  const full = desireFor(laptop, map, {}, { ...usualConstraints, allowed: [prefix('0.0.0.0/0')] });
  const route = (link: string): KernelRoute => ({
    link,
    local: false,
    source: null,
    gateway: null,
    table: 'main',
    prefix: prefix('0.0.0.0/0'),
    protocol: 'boot',
  });
  const [inside, outside, nowhere] = [route('cpn0'), route('eth0'), { link: null, why: 'none' } as const];
  const from = address('203.0.113.22');

  it.each([
    ['stay outside', outside, outside, 'ok'],
    ['go into the tunnel', inside, outside, 'problem'],
    ['go into the tunnel, as the host has no other route', inside, nowhere, 'ok'],
    ['go into the tunnel by a route that a peer serves', inside, inside, 'ok'],
    ['are refused by the host', nowhere, nowhere, 'ok'],
  ])('that %s', (_what, route, without, verdict) => {
    expect(checkAnswers([{ from, route, outside: without }], full, bare)).toMatchObject([{ verdict }]);
  });

  it('include those of containers, which only packet rules keep outside', () => {
    const actual = { ...bare, sysctls: { [allForwardingKey]: '1' } };
    const paths = [{ from, route: outside, outside }];
    expect(checkAnswers(paths, full, actual)).toMatchObject([{ verdict: 'ok' }, { verdict: 'note' }]);
    const rules = tunnelRules(usualConstraints, true);
    expect(checkAnswers(paths, { ...full, rules }, actual)).toMatchObject([{ verdict: 'ok' }]);
  });

  it('leave out what a rule by mark leads elsewhere: a note, where it comes after the tunnel', () => {
    const rule = { ...makeRule(32_765, { fwmark: 1, table: '101' }), protocol: '0' };
    const rules = [rule, { ...rule, priority: 1000 }, { ...tunnelRule, priority: 32_764, protocol: '0' }];
    expect(checkAnswers([], full, { ...bare, rules })).toMatchObject([
      { verdict: 'ok' },
      { verdict: 'note', found: expect.stringContaining('"32765: from all fwmark 0x1 lookup 101"') },
    ]);
  });

  it('are not examined without one', () => {
    expect(checkAnswers([], desireFor(laptop, network([laptop])), bare)).toEqual([]);
    // The platform has no policy rules.
    expect(checkAnswers([{ from, route: inside, outside }], full, { ...bare, isPlain: true })).toEqual([]);
  });
});

describe('tools', () => {
  it.each([
    ['wg', ready, 'problem'],
    ['nft', ready, 'note'],
    ['nft', { ...ready, forwards: true }, 'problem'],
    ['ping', ready, 'note'],
    ['ping', { ...ready, pings: true }, 'problem'],
  ])('%s that is not there, on a host that needs %o, is a %s', (name, needs, verdict) => {
    expect(checkTools([tool(name, null)], needs)).toMatchObject([{ verdict, remedy: `apt install ${name}` }]);
  });

  it('without nft may leave the tunnel address open to neighbours', () => {
    expect(checkTools([tool('nft', null)], ready)).toMatchObject([
      { found: expect.stringMatching(/; without it, neighbours may reach the tunnel address$/) },
    ]);
  });

  it('that are installed are reported with their versions', () => {
    expect(checkTools([tool('wg')], ready)).toMatchObject([{ verdict: 'ok', found: '/usr/bin/wg, 1.0' }]);
  });
});

describe('the kernel', () => {
  const kernel = { release: '6.1', wireguard: false, tun: true };
  it.each([
    ['has the module', { ...kernel, wireguard: true }, [], 'ok'],
    ['has none, and nothing stands in for it', kernel, [tool('wireguard-go', null)], 'problem'],
    ['has none, and wireguard-go does', kernel, [tool('wireguard-go')], 'note'],
    ['has none, and wireguard-go has no tun', { ...kernel, tun: false }, [tool('wireguard-go')], 'problem'],
  ])('%s', (_, found, tools, verdict) => {
    expect(checkKernel(found, tools).verdict).toBe(verdict);
  });
});

describe('the host', () => {
  it('needs its privileges', () => {
    expect([checkPrivilege(true).verdict, checkPrivilege(false).verdict]).toEqual(['ok', 'problem']);
  });

  it('may have network managers that are configured to ignore our interface', () => {
    const found = checkManagers(['NetworkManager (pid 7)', 'dockerd (pid 8)'], ['NetworkManager']);
    expect(found.map(({ verdict }) => verdict)).toEqual(['ok', 'note']);
    expect(checkManagers(['NetworkManager (pid 7)'], [])[0]?.remedy).toContain('managed=0');
    expect(checkManagers([], [])).toMatchObject([{ verdict: 'ok' }]);
  });

  it.each([
    [100, null, 'ok'],
    [100, 1000, 'ok'],
    [1, null, 'problem'],
    [100, 3, 'problem'],
  ])('with %i MiB and %s files left: %s', (mebibytes, files, verdict) => {
    expect(checkSpace({ path: '/x', bytes: mebibytes * 1024 * 1024, files }).verdict).toBe(verdict);
  });

  it('runs a daemon, or reports that none runs', () => {
    expect(checkDaemon({ pid: 7, alive: true }, 1)).toMatchObject({
      verdict: 'ok',
      found: expect.stringContaining('7'),
    });
    expect(checkDaemon({ pid: 7, alive: false }, 1)).toMatchObject({
      verdict: 'note',
      found: expect.stringContaining('left its lock'),
    });
    expect(checkDaemon(null, 1).verdict).toBe('note');
    expect(checkDaemon(null, 0).verdict).toBe('ok');
  });
});

describe('a file', () => {
  const file: FileFacts = { kind: 'file', mode: 0o600, uid: 0 };
  const kept = { path: '/x', kind: 'file', isSecret: true } as const;
  it.each([
    ['is well', file, undefined],
    ['of this user is well', { ...file, uid: 1000 }, undefined],
    ['of another user', { ...file, uid: 1001 }, 'chown root /x'],
    ['that others may read', { ...file, mode: 0o640 }, 'chmod 600 /x'],
    ['that others may write', { ...file, mode: 0o622 }, 'chmod go-w /x'],
    ['that is a link', { ...file, kind: 'other' as const }, 'ls -ld /x'],
  ])('%s', (_, facts, remedy) => {
    const found = checkFile(kept, facts, 1000);
    expect(found?.verdict).toBe(remedy === undefined ? 'ok' : 'problem');
    expect(found?.remedy ?? '').toContain(remedy ?? '');
  });

  it('that is of another kind, or of another user, is wrong', () => {
    const kept = { path: '/etc/x', kind: 'file', isSecret: false } as const;
    expect(checkFile(kept, { kind: 'other', mode: 0o600, uid: 0 }, 0)?.found).toBe('is not a regular file');
    expect(checkFile({ ...kept, kind: 'folder' }, { kind: 'file', mode: 0o600, uid: 0 }, 0)?.found).toBe(
      'is not a folder',
    );
    expect(checkFile(kept, { kind: 'file', mode: 0o1666, uid: 0 }, 0)?.verdict).toBe('problem');
    expect(checkFile(kept, { kind: 'file', mode: 0o644, uid: 0 }, 1000)?.found).toBe('mode 0644, of root');
    expect(checkFile(kept, { kind: 'file', mode: 0o644, uid: 1000 }, 1000)?.found).toBe('mode 0644, of this user');
  });

  it('that does not exist is no problem; a folder may be readable, or shared like /tmp', () => {
    const folder = { path: '/x', kind: 'folder', isSecret: false } as const;
    expect(checkFile(kept, null, 0)).toBeNull();
    expect(checkFile(folder, { kind: 'folder', mode: 0o755, uid: 0 }, 0)?.verdict).toBe('ok');
    expect(checkFile(folder, { kind: 'folder', mode: 0o1777, uid: 0 }, 0)?.verdict).toBe('ok');
    expect(checkFile(folder, { kind: 'folder', mode: 0o777, uid: 0 }, 0)?.verdict).toBe('problem');
  });
});

describe('the clock', () => {
  it.each([
    [0, 'ok', 'agrees'],
    [60, 'ok', 'agrees'],
    [90, 'problem', '90 s ahead'],
    [-600, 'problem', '10 min behind'],
    [86_400 * 400, 'problem', '400 days ahead'],
  ])('that differs by %i s', (seconds, verdict, found) => {
    expect(checkServiceClock('https://x', 2e9 + seconds, 2e9)).toMatchObject({
      verdict,
      found: expect.stringContaining(found),
    });
  });

  it('that went back is detected by an earlier recorded time', () => {
    const moments = [
      { what: 'the join', at: 1000 },
      { what: 'a handshake', at: 9000 },
    ];
    expect(checkOwnClock(moments, 9000).verdict).toBe('ok');
    expect(checkOwnClock(moments, 2000)).toMatchObject({
      verdict: 'problem',
      found: expect.stringContaining('a handshake is 117 min in the future'),
    });
    expect(checkOwnClock([], 0).verdict).toBe('ok');
  });
});

describe('the MTU', () => {
  it('is too large where large packets vanish and small ones do not', () => {
    const echoes = { target: 'x', full: 1420 };
    expect(checkTunnelEchoes({ ...echoes, passed: 1420 }, 'cpn0', false).verdict).toBe('ok');
    expect(checkTunnelEchoes({ ...echoes, passed: null }, 'cpn0', false).verdict).toBe('note');
    expect(checkTunnelEchoes({ ...echoes, passed: 1300 }, 'cpn0', false)).toMatchObject({
      verdict: 'problem',
      remedy: 'cpn set cpn0 --mtu 1300, on both ends',
    });
    expect(checkOuterEchoes({ ...echoes, passed: 1300 }, 'cpn0')).toMatchObject({
      verdict: 'note',
      remedy: expect.stringContaining('--mtu 1240'),
    });
  });
});

/** This host, number 1, with its interface up on port 51820. */
function makeMapped(
  self: Partial<Peer> = {},
  changes: Partial<MappedNetwork> = {},
  listenPort: number | null = 51820,
): MappedNetwork {
  const own = peer(1, self);
  const map = network([own, peer(2)]);
  const device = { publicKey: keyPair(1).publicKey, listenPort: 51820, fwmark: null, peers: [] };
  const desired = desireFor(own, map, { options: { ...options, listenPort } });
  return { map, self: own, enabled: true, desired, actual: { ...bare, device }, ...changes };
}
const open = new Set([51820]);

describe('ports', () => {
  it.each([
    ['nowhere', null, 'ok'],
    ['by a name', { host: 'edge.example.net', port: 1 }, 'ok'],
    ['at its own address', { host: address('203.0.113.22'), port: 51820 }, 'ok'],
    ['at the address of a router', { host: address('198.51.100.7'), port: 1 }, 'note'],
  ])('of a host that is dialled %s', (_, endpoint, verdict) => {
    const found = checkPorts(makeMapped({ endpoint }), open);
    expect(found.map((each) => each.verdict)).toEqual(['ok', verdict]);
  });

  it('other than the endpoint at an own address are left to the problems of the status', () => {
    const found = checkPorts(makeMapped({ endpoint: { host: address('203.0.113.22'), port: 1 } }), open);
    expect(found.map(({ checked }) => checked)).toEqual(['the UDP port of cpn0']);
  });

  it('without a listener, or without an interface', () => {
    expect(checkPorts(makeMapped(), new Set())[0]?.verdict).toBe('problem');
    expect(checkPorts(makeMapped({}, { actual: bare }), open)).toEqual([]);
  });
});

describe('forwarding', () => {
  it('is checked on a connector only: it must be on, and no rule may drop its packets', () => {
    const connector = makeMapped({ type: 'connector', endpoint: dialled(1) });
    const sysctls = { 'net.ipv4.conf.cpn0.forwarding': '1', 'net.ipv4.conf.eth0.forwarding': '1' };
    const firewall = connector.desired.firewall && firewallMarks(connector.desired.firewall);
    const on = { ...connector, actual: { ...connector.actual, firewall, sysctls } };
    const dropped = problem('packets-dropped', { interface: 'cpn0', drop: 'docker drops all', command: 'allow it' });
    const verdicts = (found: ReturnType<typeof checkForwarding>) => found.map(({ verdict }) => verdict);
    expect(checkForwarding(makeMapped(), [])).toEqual([]);
    expect(verdicts(checkForwarding(connector, []))).toEqual(['problem', 'problem', 'ok']);
    expect(verdicts(checkForwarding(on, []))).toEqual(['ok', 'ok']);
    expect(verdicts(checkForwarding(on, [dropped]))).toEqual(['ok', 'problem']);
    const blocklist = { kind: 'set', family: 'ip', table: 'geo', name: 'bad' } as const;
    expect(verdicts(checkForwarding(on, [], [blocklist]))).toEqual(['ok', 'note']);
    expect(verdicts([connector, on].flatMap(checkRules))).toEqual(['problem', 'ok']);
  });

  it('needs no packet rules on another host; the status notes an address that is open to its neighbours', () => {
    const open = makeMapped();
    expect(checkRules(open)).toEqual([]);
    const closed = { ...open, desired: { ...open.desired, firewall: { link: 'cpn0', rules: [] } } };
    const found = expect.stringContaining('neighbours reach the tunnel address until');
    expect(checkRules(closed)).toMatchObject([{ verdict: 'problem', found }]);
  });
});

describe('networks', () => {
  it('that claim the same addresses are reported', () => {
    const { desired, ...rest } = makeMapped();
    const refused = { prefix: prefix('192.168.50.0/24'), via: null, state: 'refused' as const };
    const report = [
      { ...refused, reason: 'covers a resolver (192.168.50.1)' },
      { ...refused, reason: 'not accepted' },
    ];
    const seen = { ...rest, desired: { ...desired, report }, actual: bare };
    expect(checkConflicts(seen)).toMatchObject([
      { verdict: 'note', remedy: 'cpn set cpn0 --allow-route 192.168.50.0/24, if this is intended' },
    ]);
    expect(checkConflicts(makeMapped({}, { desired: { ...desired, report: [] } }))).toMatchObject([{ verdict: 'ok' }]);
  });
});
