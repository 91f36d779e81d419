import { describe, expect, it } from 'vitest';
import { judgeOwnClock, judgeServiceClock } from '../../src/core/doctor/judge-clock.ts';
import { type FileFacts, judgeDaemon, judgeFile } from '../../src/core/doctor/judge-files.ts';
import {
  judgeKernel,
  judgeManagers,
  judgePrivilege,
  judgeSpace,
  judgeTools,
  type ToolFound,
} from '../../src/core/doctor/judge-host.ts';
import { judgeOuterEchoes, judgeTunnelEchoes } from '../../src/core/doctor/judge-mtu.ts';
import { judgeConflicts, judgeForwarding, judgePorts, type Scene } from '../../src/core/doctor/judge-network.ts';
import { firewallMarks } from '../../src/core/firewall.ts';
import type { Peer } from '../../src/core/model.ts';
import { address, bare, desireFor, dialled, keyPair, network, options, peer, prefix, surroundings } from './samples.ts';

const tool = (name: string, path: string | null = `/usr/bin/${name}`): ToolFound => {
  return { tool: name, path, version: path && '1.0', remedy: `apt install ${name}` };
};
const ready = { forwards: false, pings: false };

describe('tools', () => {
  it.each([
    ['wg', ready, 'problem'],
    ['nft', ready, 'note'],
    ['nft', { ...ready, forwards: true }, 'problem'],
    ['ping', ready, 'note'],
    ['ping', { ...ready, pings: true }, 'problem'],
  ])('%s that is not there, on a host that needs %o, is a %s', (name, needs, verdict) => {
    expect(judgeTools([tool(name, null)], needs)).toMatchObject([{ verdict, remedy: `apt install ${name}` }]);
  });

  it('that are there are told with their versions', () => {
    expect(judgeTools([tool('wg')], ready)).toMatchObject([{ verdict: 'ok', found: '/usr/bin/wg, 1.0' }]);
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
    expect(judgeKernel(found, tools).verdict).toBe(verdict);
  });
});

describe('the host', () => {
  it('needs its privileges', () => {
    expect([judgePrivilege(true).verdict, judgePrivilege(false).verdict]).toEqual(['ok', 'problem']);
  });

  it('may have managers of networks that are told to leave ours alone', () => {
    const found = judgeManagers(['NetworkManager (pid 7)', 'dockerd (pid 8)'], ['NetworkManager']);
    expect(found.map(({ verdict }) => verdict)).toEqual(['ok', 'note']);
    expect(judgeManagers(['NetworkManager (pid 7)'], [])[0]?.remedy).toContain('managed=0');
    expect(judgeManagers([], [])).toMatchObject([{ verdict: 'ok' }]);
  });

  it.each([
    [100, null, 'ok'],
    [100, 1000, 'ok'],
    [1, null, 'problem'],
    [100, 3, 'problem'],
  ])('with %i MiB and %s files left: %s', (mebibytes, files, verdict) => {
    expect(judgeSpace({ path: '/x', bytes: mebibytes * 1024 * 1024, files }).verdict).toBe(verdict);
  });

  it('is looked after by a daemon, or says that it is not', () => {
    expect(judgeDaemon({ pid: 7, alive: true }, 1)).toMatchObject({
      verdict: 'ok',
      found: expect.stringContaining('7'),
    });
    expect(judgeDaemon({ pid: 7, alive: false }, 1)).toMatchObject({
      verdict: 'note',
      found: expect.stringContaining('left its lock'),
    });
    expect(judgeDaemon(null, 1).verdict).toBe('note');
    expect(judgeDaemon(null, 0).verdict).toBe('ok');
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
    const found = judgeFile(kept, facts, 1000);
    expect(found?.verdict).toBe(remedy === undefined ? 'ok' : 'problem');
    expect(found?.remedy ?? '').toContain(remedy ?? '');
  });

  it('that is of another kind, or of another user, is wrong', () => {
    const kept = { path: '/etc/x', kind: 'file', isSecret: false } as const;
    expect(judgeFile(kept, { kind: 'other', mode: 0o600, uid: 0 }, 0)?.found).toBe('is no regular file');
    expect(judgeFile({ ...kept, kind: 'folder' }, { kind: 'file', mode: 0o600, uid: 0 }, 0)?.found).toBe(
      'is no folder',
    );
    expect(judgeFile(kept, { kind: 'file', mode: 0o1666, uid: 0 }, 0)?.verdict).toBe('problem');
    expect(judgeFile(kept, { kind: 'file', mode: 0o644, uid: 0 }, 1000)?.found).toBe('mode 0644, of root');
    expect(judgeFile(kept, { kind: 'file', mode: 0o644, uid: 1000 }, 1000)?.found).toBe('mode 0644, of this user');
  });

  it('that is not there is nobody’s trouble, and a folder may be read, or shared as /tmp is', () => {
    const folder = { path: '/x', kind: 'folder', isSecret: false } as const;
    expect(judgeFile(kept, null, 0)).toBeNull();
    expect(judgeFile(folder, { kind: 'folder', mode: 0o755, uid: 0 }, 0)?.verdict).toBe('ok');
    expect(judgeFile(folder, { kind: 'folder', mode: 0o1777, uid: 0 }, 0)?.verdict).toBe('ok');
    expect(judgeFile(folder, { kind: 'folder', mode: 0o777, uid: 0 }, 0)?.verdict).toBe('problem');
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
    expect(judgeServiceClock('https://x', 2e9 + seconds, 2e9)).toMatchObject({
      verdict,
      found: expect.stringContaining(found),
    });
  });

  it('that went back is known by what was written down before', () => {
    const moments = [
      { what: 'the join', at: 1000 },
      { what: 'a handshake', at: 9000 },
    ];
    expect(judgeOwnClock(moments, 9000).verdict).toBe('ok');
    expect(judgeOwnClock(moments, 2000)).toMatchObject({
      verdict: 'problem',
      found: expect.stringContaining('a handshake is 117 min in the future'),
    });
    expect(judgeOwnClock([], 0).verdict).toBe('ok');
  });
});

describe('the MTU', () => {
  it('is too large where large packets vanish and small ones do not', () => {
    const echoes = { target: 'x', full: 1420 };
    expect(judgeTunnelEchoes({ ...echoes, passed: 1420 }, 'cpn0', false).verdict).toBe('ok');
    expect(judgeTunnelEchoes({ ...echoes, passed: null }, 'cpn0', false).verdict).toBe('note');
    expect(judgeTunnelEchoes({ ...echoes, passed: 1300 }, 'cpn0', false)).toMatchObject({
      verdict: 'problem',
      remedy: 'cpn set cpn0 --mtu 1300, on both ends',
    });
    expect(judgeOuterEchoes({ ...echoes, passed: 1300 }, 'cpn0')).toMatchObject({
      verdict: 'note',
      remedy: expect.stringContaining('--mtu 1240'),
    });
  });
});

/** This host, number 1, with its interface up on port 51820. */
function scene(self: Partial<Peer> = {}, changes: Partial<Scene> = {}, listenPort: number | null = 51820): Scene {
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
    ['at its own address, and another port', { host: address('203.0.113.22'), port: 1 }, 'problem'],
    ['at the address of a router', { host: address('198.51.100.7'), port: 1 }, 'note'],
  ])('of a host that is dialled %s', (_, endpoint, verdict) => {
    const found = judgePorts(scene({ endpoint }), open);
    expect(found.map((each) => each.verdict)).toEqual(['ok', verdict]);
  });

  it('that nobody listens on, or that another program has', () => {
    expect(judgePorts(scene(), new Set())[0]?.verdict).toBe('problem');
    expect(judgePorts(scene({}, { actual: bare }), open)).toMatchObject([
      { remedy: expect.stringContaining('ss -lunp') },
    ]);
    expect(judgePorts(scene({}, { actual: bare, enabled: false }), open)).toEqual([]);
    expect(judgePorts(scene({}, { actual: bare }, null), open)).toEqual([]);
  });
});

describe('forwarding', () => {
  it('is of interest on a connector only, where it is on and nobody drops anything', () => {
    const connector = scene({ type: 'connector', endpoint: dialled(1) });
    const sysctls = { 'net.ipv4.conf.cpn0.forwarding': '1', 'net.ipv4.conf.eth0.forwarding': '1' };
    const firewall = connector.desired.firewall && firewallMarks(connector.desired.firewall);
    const on = { ...connector, actual: { ...connector.actual, firewall, sysctls } };
    const verdicts = (found: ReturnType<typeof judgeForwarding>) => found.map(({ verdict }) => verdict);
    expect(judgeForwarding(scene(), [])).toEqual([]);
    expect(verdicts(judgeForwarding(connector, []))).toEqual(['problem', 'problem', 'problem', 'ok']);
    expect(verdicts(judgeForwarding(on, []))).toEqual(['ok', 'ok', 'ok']);
    expect(verdicts(judgeForwarding(on, ['docker drops all']))).toEqual(['ok', 'ok', 'problem']);
  });
});

describe('networks', () => {
  it('that want the same addresses are told of', () => {
    const connected = [{ prefix: prefix('10.77.0.2/32'), link: 'cpn1' }];
    const beside = { ...surroundings, connected };
    const { desired, ...rest } = scene();
    const refused = { prefix: prefix('192.168.50.0/24'), via: null, state: 'refused' as const };
    const report = [
      { ...refused, reason: 'covers a resolver (192.168.50.1)' },
      { ...refused, reason: 'not accepted' },
    ];
    const seen = { ...rest, desired: { ...desired, report }, actual: { ...bare, surroundings: beside } };
    expect(judgeConflicts(seen)).toMatchObject([
      { verdict: 'problem', found: expect.stringContaining('peer-2 is out of reach') },
      { verdict: 'note', remedy: 'cpn set cpn0 --allow-route 192.168.50.0/24, if that is meant to be' },
    ]);
    expect(judgeConflicts(scene({}, { desired: { ...desired, report: [] } }))).toMatchObject([{ verdict: 'ok' }]);
  });
});
