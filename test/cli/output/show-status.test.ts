import { describe, expect, it } from 'vitest';
import type { NetworkStatus, PeerStatus } from '../../../src/app/problems/network-status.ts';
import { rateMeter } from '../../../src/cli/commands/status.ts';
import { statusToJson, statusToText } from '../../../src/cli/output/show-status.ts';
import { UnreadableFile } from '../../../src/core/errors/index.ts';
import { defaultOptions, type Options, parseProbeTarget } from '../../../src/core/map/options.ts';
import type { RefusedConnection } from '../../../src/core/rules/refused.ts';
import { address, prefix } from '../../core/samples.ts';

const peer: PeerStatus = {
  id: 1,
  name: 'edge-1',
  label: 'edge-1',
  labelTaken: null,
  type: 'connector',
  publicKey: 'K1',
  address: '10.77.0.1',
  endpoint: '203.0.113.1:51820',
  endpointRefused: null,
  endpointChoice: null,
  allowedIps: ['10.77.0.0/24'],
  state: 'connected',
  path: 'direct',
  via: null,
  since: null,
  latestHandshake: 1_800_000_000,
  rxBytes: 2048,
  txBytes: 100,
  pin: 'ok',
  claim: null,
  claimedPublicKey: null,
  secret: null,
};
const office: NetworkStatus = {
  network: { id: 7, name: 'office' },
  interface: 'cpn0',
  state: 'up',
  address: '10.77.0.3',
  publicKey: 'K3',
  keySince: '2026-01-01T00:00:00.000Z',
  expiresAt: null,
  deletedAt: null,
  mapEnd: null,
  listenPort: 51820,
  mtu: 1420,
  pathMtu: null,
  relay: null,
  options: defaultOptions,
  peers: [peer],
  domains: [],
  routes: [],
  drift: [],
  rules: { mode: 'open' },
  inbound: null,
  reachability: null,
  foreignRoutes: [],
  outside: { entries: [], omitted: 0 },
  sync: { mode: 'push', lastSuccess: null, error: null, refused: null },
  problems: [],
  warnings: [],
  authorities: [],
  failure: null,
};
const failure = new UnreadableFile('/var/lib/cpn/cpn1.json', 'is damaged', 'restore it');
const unreadable: NetworkStatus = {
  ...office,
  network: null,
  interface: 'cpn1',
  state: 'degraded',
  address: null,
  publicKey: null,
  peers: [],
  failure,
};
const now = new Date(1_800_000_060_000);

describe('the status of a network whose MTU was measured', () => {
  const limited = { ...office, mtu: 1312, pathMtu: { peer: 'edge-1', measuredAt: '2026-11-22T12:00:00.000Z' } };

  it('says so, and to which peer', () => {
    expect(statusToText(limited, now)).toContain('MTU 1312 (measured to edge-1)');
    expect(statusToJson(limited)).toMatchObject({
      mtu: 1312,
      path_mtu: { peer: 'edge-1', measured_at: '2026-11-22T12:00:00.000Z' },
    });
    expect(statusToJson(office)).not.toHaveProperty('path_mtu');
  });
});

describe('the domains in the status', () => {
  const own = {
    domain: 'office.cpn.internal',
    route: null,
    servers: [],
    state: 'refused',
    reason: 'no resolver',
  } as const;
  const corp = { ...own, domain: 'corp.example', route: prefix('192.168.50.0/24') };

  it('leave out the names of peers on a host that resolves none, unless there is another domain', () => {
    const text = (domains: NetworkStatus['domains']) => statusToText({ ...office, domains }, now);
    expect(text([own])).not.toContain('cpn.internal');
    for (const shown of [[own, corp], [{ ...own, state: 'waiting' as const }]])
      expect(text(shown)).toContain(own.domain);
    expect(statusToJson({ ...office, domains: [own] })).toMatchObject({ domains: [own] });
  });
});

describe('the options in the status', () => {
  const fixed = { ...defaultOptions, listenPort: 51_820 };
  const options: Options = {
    ...fixed,
    ...{ mtu: 1380, directPaths: false, hosts: true, rotateEvery: 30 * 86_400, pin: 'strict' },
    probes: [parseProbeTarget('192.168.50.5:22'), parseProbeTarget('192.168.50.6')],
    maps: [{ route: prefix('10.201.1.0/24'), local: prefix('192.168.1.0/24') }],
    allowRoutes: [prefix('0.0.0.0/0')],
  };

  it('are the flags that set them, in the text those that are not the default', () => {
    const line = (given: Options) => statusToText({ ...office, options: given }, now).split('\n')[2];
    expect(line(options)).toBe(
      'options  --mtu 1380 --probe 192.168.50.5:22 --probe 192.168.50.6 --map 10.201.1.0/24=192.168.1.0/24 --hosts --pin strict --rotate-every 30d --no-direct-paths --allow-route 0.0.0.0/0',
    );
    expect(line({ ...fixed, rotateEvery: 5400 })).toBe('options  --rotate-every 90m');
    for (const each of [defaultOptions, fixed]) expect(line(each)).not.toContain('options');
  });

  it('are all in JSON, unless the state cannot be read', () => {
    expect(statusToJson({ ...office, options })).toMatchObject({
      options: {
        ...{ listen_port: 51_820, mtu: 1380, accept_routes: true, hosts: true, direct_paths: false, pin: 'strict' },
        ...{ rotate_every: 2_592_000, probe: ['192.168.50.5:22', '192.168.50.6'], allow_route: ['0.0.0.0/0'] },
        map: ['10.201.1.0/24=192.168.1.0/24'],
      },
    });
    expect(statusToJson({ ...unreadable, options: null })).not.toHaveProperty('options');
  });
});

describe('the status of a host that others reach', () => {
  it.each([
    [{ reachableBy: 3, witnesses: 4 }, 'reachable by 3 of 4 hosts'],
    [{ reachableBy: 1, witnesses: 1 }, 'reachable by 1 of 1 host'],
  ])('says by how many', (reachability, line) => {
    expect(statusToText({ ...office, reachability }, now).split('\n')[2]).toBe(line);
    const { reachableBy, witnesses } = reachability;
    expect(statusToJson({ ...office, reachability })).toMatchObject({
      health: { reachable_by: reachableBy, witnesses },
    });
  });

  it('says nothing where no host can tell, and where the service does not say', () => {
    for (const reachability of [null, { reachableBy: 0, witnesses: 0 }]) {
      expect(statusToText({ ...office, reachability }, now)).not.toContain('reachable');
    }
    expect(statusToJson(office)).not.toHaveProperty('health');
  });
});

describe('the status of a closed network', () => {
  const connection: RefusedConnection = {
    ...{ from: address('10.77.0.1'), to: address('10.77.0.3') },
    ...{ protocol: 'tcp', port: 22, seconds: 7 },
  };
  const refusing = (...latest: RefusedConnection[]): NetworkStatus => ({
    ...office,
    rules: { mode: 'closed', count: 2, refused: { packets: { in: 3, out: 4 }, latest } },
  });
  const lines = (status: NetworkStatus) => statusToText(status, now).split('\n').slice(2);

  it('has the number of rules, and the refused connections with names of peers', () => {
    const unlisted = { ...connection, from: address('10.77.0.3'), to: address('192.168.50.7'), port: 514 };
    expect(lines(refusing(connection, unlisted))).toEqual([
      'rules  closed, 2 rules',
      'refused in the last 5 minutes: edge-1 → this host tcp 22; this host → 192.168.50.7 tcp 514',
      ...lines(office),
    ]);
    expect(statusToJson(refusing(connection)).rules).toEqual({
      ...{ mode: 'closed', count: 2 },
      refused: { packets: { in: 3, out: 4 }, latest: [connection] },
    });
  });

  it('names the latest five connections, and counts the others', () => {
    const all = Array.from({ length: 7 }, (_, at) => ({ ...connection, port: at + 1 }));
    expect(lines(refusing(...all))[1]).toMatch(/tcp 5; and 2 more$/);
  });

  it('has no line without a refused connection, and no count of packets where it cannot be read', () => {
    expect(lines(refusing())).toEqual(['rules  closed, 2 rules', ...lines(office)]);
    const unread: NetworkStatus = { ...office, rules: { mode: 'closed', count: 1, refused: null } };
    expect(lines(unread)[0]).toBe('rules  closed, 1 rule');
    expect(statusToJson(unread).rules).toEqual({ mode: 'closed', count: 1 });
    expect(statusToJson(office).rules).toEqual({ mode: 'open' });
    expect(statusToJson({ ...unreadable, rules: null })).not.toHaveProperty('rules');
  });
});

describe('the status of a host that expires', () => {
  it('says when', () => {
    const ending = { ...office, expiresAt: '2030-01-31T12:00:00.000Z' };
    expect(statusToText(ending, now)).toContain(' · expires 2030-01-31');
    expect(statusToJson(ending)).toMatchObject({ expires_at: '2030-01-31T12:00:00.000Z' });
    expect(statusToJson(office)).not.toHaveProperty('expires_at');
  });
});

describe('the status as JSON', () => {
  it('has warnings only where there are some', () => {
    expect(statusToJson(office)).not.toHaveProperty('warnings');
    expect(statusToJson({ ...office, warnings: ['route 192.168.50.0/24 keeps coming back'] }).warnings).toEqual([
      'route 192.168.50.0/24 keeps coming back',
    ]);
  });

  it('says of the sync that it is refused, and why, only where it is', () => {
    const refusal = 'reading was refused (401)';
    const sync = { ...office.sync, error: refusal, refused: 'token', refusal } as const;
    expect(statusToJson({ ...office, sync }).sync).toMatchObject({ refused: 'token', error: sync.error });
    expect(statusToJson(office).sync).not.toHaveProperty('refused');
    const text = statusToText({ ...office, sync }, now);
    expect(text.split('\n').at(-1)).toBe('sync refused (token) reading was refused (401)');
  });

  it('says of a refusal that stands what it was, and the later failure by itself', () => {
    const sync = { ...office.sync, error: 'unreachable', refused: 'token', refusal: 'refused (401)' } as const;
    const lines = statusToText({ ...office, sync }, now).split('\n');
    expect(lines.slice(-2)).toEqual(['sync refused (token) refused (401)', 'sync unreachable']);
    const { refusal: _, ...ofVersionBefore } = sync;
    const before = statusToText({ ...office, sync: ofVersionBefore }, now).split('\n');
    expect(before.slice(-2)).toEqual([
      'sync refused (token) until the control plane sends a map again',
      'sync unreachable',
    ]);
  });

  it('has every field of a network that cannot be read, and why it cannot', () => {
    const json = statusToJson(unreadable);
    expect(Object.keys(json)).toEqual([...Object.keys(statusToJson(office)), 'warnings']);
    expect(json).toMatchObject({ interface: 'cpn1', state: 'degraded', network: null, warnings: [failure.message] });
  });
});

describe('the status as text', () => {
  it('tells warnings, made printable', () => {
    const text = statusToText({ ...office, warnings: ['a\u001b[2Jb'] }, now);
    expect(text.split('\n').at(-1)).toBe('warning a\u{fffd}[2Jb');
  });

  it('has the time since a switch to a direct path', () => {
    const since = new Date(now.getTime() - 300_000).toISOString();
    const direct = { ...office, peers: [{ ...peer, since }] };
    expect(statusToText(direct, now)).toContain('203.0.113.1:51820 (direct for 5 min)');
    expect(statusToJson(direct)).toMatchObject({ peers: [{ path: 'direct', since }] });
    const relayed = { ...office, peers: [{ ...peer, path: 'relayed', via: 'edge-2', since } as const] };
    expect(statusToText(relayed, now)).toMatch(/ via edge-2 +2\.0 KiB/);
  });

  it('names the addresses of an endpoint that has several', () => {
    const endpointChoice = { name: 'edge.example.net', addresses: ['203.0.113.1', '2001:db8::1'] };
    const named = { ...office, peers: [{ ...peer, endpointChoice }] };
    expect(statusToText(named, now)).toContain('edge.example.net has 2 addresses: 203.0.113.1, 2001:db8::1');
    expect(statusToJson(named)).toMatchObject({
      peers: [{ endpoint_name: 'edge.example.net', endpoint_addresses: ['203.0.113.1', '2001:db8::1'] }],
    });
  });

  it('says below each peer what is claimed of it, made printable', () => {
    const held: PeerStatus = { ...peer, pin: 'held', claim: 'key B\u001b[2J instead of A' };
    const lines = statusToText({ ...office, peers: [peer, held, peer] }, now).split('\n');
    expect(lines.slice(-4).map((line) => line.split(' ')[0])).toEqual(['edge-1', 'edge-1', '', 'edge-1']);
    expect(lines.at(-2)).toBe('  held: key B\u{fffd}[2J instead of A');
  });

  it('has the name by which hosts resolve a peer next to its own', () => {
    const peers = [
      { ...peer, name: '北京-web', label: 'beijing-web' },
      { ...peer, name: 'Zoë', label: 'zo' },
      { ...peer, name: 'Web', label: 'web' },
    ];
    expect(statusToText({ ...office, peers }, now)).toMatch(/\n北京-web \(beijing-web\) .*\nZoë \(zo\) .*\nWeb {2}/);
  });

  it('has the peer that a DNS name is of, if another peer has the name', () => {
    const taken = { label: 'web-1', by: 'database' };
    const peers = [{ ...peer, name: 'web-1', label: 'web-1-4', labelTaken: taken }, peer];
    const line = '\n  DNS name web-1-4: the DNS name web-1 is of database\nedge-1 ';
    expect(statusToText({ ...office, peers }, now, 60)).toContain(line);
    expect(statusToJson({ ...office, peers }).peers).toMatchObject([{ dns_label: 'web-1-4' }, { dns_label: 'edge-1' }]);
  });

  it('fits a terminal of 80 columns, with keys shortened and names cut', () => {
    const long = { ...peer, name: 'a-name-of-a-peer-that-is-rather-long', endpoint: '203.0.113.111:51820' };
    const key = 'cTHGxLGXe6TnRPWRj7O6bUyVVkJuhSPVSyzZgF7xv1E=';
    const warnings = [`${'many words '.repeat(20)}at the end`];
    const shown = { ...office, publicKey: key, peers: [peer, long, { ...long, claim: 'key B' }], warnings };
    const lines = statusToText(shown, now, 80).split('\n');
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    expect(lines[1]).toContain('key cTHGxLGXe6T…');
    expect(lines.join('\n')).toMatch(/\na-name-of-\S*… /);
    expect(lines.findIndex((line) => line.includes('key B'))).toBe(
      lines.findIndex((line) => line.startsWith('warning')) - 1,
    );
    expect(statusToText(shown, now)).toContain(key);
  });

  it('is one line for a network that cannot be read', () => {
    expect(statusToText(unreadable, now)).toBe('cpn1  degraded');
  });

  it('shows the rate between two readings, and none for counters that were reset', () => {
    const measure = rateMeter();
    const row = (rxBytes: number, at: number) => {
      const networks = [{ ...office, peers: [{ ...peer, rxBytes }] }];
      const rates = measure(networks, at);
      return statusToText(networks[0] ?? office, now, null, rates)
        .split('\n')
        .at(-1);
    };
    expect(row(2048, 10)).toMatch(/2\.0 KiB {2,}100 B$/);
    expect(row(6144, 12)).toMatch(/6\.0 KiB \(2\.0 KiB\/s\) {2,}100 B \(0 B\/s\)$/);
    expect(row(92, 14)).toMatch(/92 B {2,}100 B \(0 B\/s\)$/);
    expect(row(92, 14)).toMatch(/92 B {2,}100 B$/);
  });
});
