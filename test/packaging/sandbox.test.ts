import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { listUnits } from '../../packaging/tree.ts';
import { addressIn, parsePrefix, rangeOf } from '../../src/core/net/cidr.ts';
import { defaultFolders } from '../../src/host/open-host.ts';
import { type Access, accessTo, parseUnit, readUnit, type Section, wordsOf } from './unit-file.ts';

const repository = join(import.meta.dirname, '../..');
const services = listUnits().filter((unit) => unit.endsWith('.service'));
const serviceOf = (unit: string): Section => readUnit(unit).get('Service') ?? new Map();
const daemon = serviceOf('cpn.service');
const first = serviceOf('cpn-join.service');
const plane = serviceOf('cpn-control-plane.service');

/** Both make tunnels. They differ in how they start, stop and restart alone. */
const lifecycle = [
  ...['Type', 'NotifyAccess', 'RemainAfterExit', 'ExecStart', 'ExecReload', 'LoadCredential', 'WatchdogSec'],
  ...['Restart', 'RestartSec', 'RestartPreventExitStatus', 'TimeoutStartSec', 'TimeoutStopSec', 'OOMScoreAdjust'],
];
const sandboxOf = (service: Section) =>
  Object.fromEntries([...service].filter(([key]) => !lifecycle.includes(key)).toSorted());

describe('the units of the daemon and of the first join', () => {
  test('have one sandbox, but for the folders of node_exporter, and names, which the daemon alone writes and serves', () => {
    const metrics = '-/var/lib/prometheus/node-exporter -/var/lib/node_exporter';
    expect(daemon.get('ReadWritePaths')).toContain(metrics);
    const others = daemon.get('ReadWritePaths')?.filter((line) => line !== metrics) ?? [];
    // The daemon alone serves names.
    const [capabilities = ''] = first.get('CapabilityBoundingSet') ?? [];
    expect(daemon.get('CapabilityBoundingSet')).toEqual([`${capabilities} CAP_NET_BIND_SERVICE`]);
    expect(sandboxOf(first)).toEqual({
      ...sandboxOf(daemon),
      CapabilityBoundingSet: [capabilities],
      ReadWritePaths: others,
    });
    expect(Object.keys(sandboxOf(daemon)).length).toBeGreaterThan(35);
  });

  test.each([
    ['cpn.service', daemon],
    ['cpn-join.service', first],
  ])('%s sends to unicast addresses alone, and to all of them', (_, service) => {
    expect(wordsOf(service, 'IPAddressDeny')).toEqual(['any']);
    // RFC 5771: from 224 on, multicast and reserved. IANA's registry of IPv6: what is assigned, without ff00::/8.
    expect(listRanges(wordsOf(service, 'IPAddressAllow'))).toEqual([
      '0.0.0.0 to 223.255.255.255',
      ':: to 3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
      'fc00:: to fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
      'fe80:: to febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    ]);
  });
});

/** The addresses of prefixes as ranges of neighbours, IPv4 first. */
function listRanges(prefixes: readonly string[]): string[] {
  return ([4, 6] as const).flatMap((family) => {
    const own = prefixes.filter((prefix) => prefix.includes(':') === (family === 6)).map((text) => parsePrefix(text));
    const sorted = own.map(rangeOf).toSorted((a, b) => (a.first < b.first ? -1 : 1));
    const joined: { first: bigint; last: bigint }[] = [];
    for (const range of sorted) {
      const before = joined.at(-1);
      if (before !== undefined && range.first === before.last + 1n) before.last = range.last;
      else joined.push({ ...range });
    }
    return joined.map((range) => `${addressIn(family, range.first)} to ${addressIn(family, range.last)}`);
  });
}

test('the ranges of prefixes show a gap and an overlap', () => {
  expect(listRanges(['10.0.0.0/9', '10.128.0.0/9', '::/3'])).toHaveLength(2);
  expect(listRanges(['10.0.0.0/9', '11.0.0.0/8'])).toHaveLength(2);
  expect(listRanges(['10.0.0.0/8', '10.0.0.0/9'])).toHaveLength(2);
});

describe('every service', () => {
  /** Settings in which the control plane differs: it makes no tunnel, and has a user of its own. */
  const own = new Map<string, readonly string[]>([
    ['CapabilityBoundingSet', ['CAP_NET_BIND_SERVICE']],
    ['AmbientCapabilities', ['CAP_NET_BIND_SERVICE']],
    ['DynamicUser', ['yes']],
    ['User', ['cpn-control-plane']],
    ['StateDirectory', ['cpn-control-plane']],
    ['RuntimeDirectory', ['cpn-control-plane']],
    ['ProcSubset', ['pid']],
    ['EnvironmentFile', ['-/etc/cpn/control-plane.env']],
    ['SystemCallFilter', ['@system-service', '@pkey', '~@resources', '@privileged']],
  ]);
  /** What the control plane does without: each of these is for tunnels, for files in /etc, or implied by DynamicUser=. */
  const ofTunnels = [
    ...['KillMode', 'RuntimeDirectoryMode', 'RuntimeDirectoryPreserve', 'ReadWritePaths', 'ReadOnlyPaths'],
    ...['InaccessiblePaths', 'PrivateMounts', 'BindPaths', 'DeviceAllow', 'IPAddressDeny', 'IPAddressAllow'],
  ];

  test('of the control plane has the sandbox of the daemon too, but for what is its own', () => {
    const keys = new Set([...daemon.keys(), ...plane.keys()].filter((key) => !lifecycle.includes(key)));
    for (const key of keys) {
      const expected = ofTunnels.includes(key) ? [] : (own.get(key) ?? wordsOf(daemon, key));
      expect([key, wordsOf(plane, key).toSorted()]).toEqual([key, [...expected].toSorted()]);
    }
  });

  test.each(services)('%s has no setting twice that is no list', (unit) => {
    const lists = ['LoadCredential', 'ReadWritePaths', 'SystemCallFilter'];
    const twice = [...readUnit(unit).values()].flatMap((section) =>
      [...section].filter(([key, values]) => values.length > 1 && !lists.includes(key)),
    );
    expect(twice).toEqual([]);
  });

  test.each(services)('%s has a page in the manual, of the command that it runs', (unit) => {
    const [, command] = /^\/usr\/bin\/cpn ([a-z -]*[a-z])/.exec(serviceOf(unit).get('ExecStart')?.[0] ?? '') ?? [];
    const words = command?.split(' --')[0]?.trim().replaceAll(' ', '-');
    expect(readUnit(unit).get('Unit')?.get('Documentation')).toEqual([`man:cpn-${words}(1)`]);
  });
});

describe('what a service reads and writes', () => {
  const { config, state, runtime } = defaultFolders('linux');
  const written = [
    ...[config, state, runtime, '/etc/hosts', '/var/run/wireguard', '/dev/net/tun', '/dev/shm', '/tmp'],
    ...['/proc/sys/net/ipv4/ip_forward', '/proc/self/coredump_filter'],
  ];

  /** Not files of the daemon: of the control plane alone, of other platforms, or written without a sandbox by a command. */
  const elsewhere = ['/var/lib/cpn-control-plane', '/var/run/cpn'];

  test.each([
    ['cpn.service', daemon],
    ['cpn-join.service', first],
  ])('is open to %s, and nothing by which others run programs', (_, service) => {
    const access = (paths: readonly string[]) => paths.map((path) => [path, accessTo(service, path)]);
    expect(access(written)).toEqual(written.map((path) => [path, 'rw' satisfies Access]));
    const closed = [
      '/etc/cron.d/x',
      '/etc/crontab',
      '/etc/systemd/system/x',
      '/etc/ssh/sshd_config',
      '/etc/sudoers.d/x',
    ];
    const others = ['/etc/profile.d/x', '/etc/pam.d/x', '/etc/ld.so.conf.d/x', '/etc/udev/rules.d/x', '/etc/init.d/x'];
    const outside = ['/usr/bin/cpn', '/var/lib/other', '/run/other', '/sys/kernel', '/proc/sys/kernel/core_pattern'];
    const readable = [...closed, ...others, ...outside];
    expect(access(readable)).toEqual(readable.map((path) => [path, 'ro' satisfies Access]));
    const secret = ['/etc/shadow', '/etc/gshadow', '/etc/ssl/private/key', '/root/.ssh/id', '/home/ann/.ssh/id'];
    expect(access(secret)).toEqual(secret.map((path) => [path, 'none' satisfies Access]));
  });

  it('holds for every path that stands in the code', () => {
    const sources = globSync('src/**/*.{ts,tsx}', { cwd: repository }).map((file) => join(repository, file));
    const literals = sources.flatMap((file) =>
      [
        ...readFileSync(file, 'utf8').matchAll(
          /['"`](\/(?:etc|var|run|proc|sys|dev|usr|lib|tmp|root|home)\b[\w./-]*)/g,
        ),
      ].map(([, path = '']) => path),
    );
    const paths = [...new Set(literals)].filter((path) => !elsewhere.includes(path));
    expect(paths.length).toBeGreaterThan(40);
    for (const service of [daemon, first]) {
      expect(paths.filter((path) => accessTo(service, path) === 'none')).toEqual([]);
    }
  });

  test('the folders of the control plane are its own', () => {
    const written = ['/var/lib/cpn-control-plane/x', '/run/cpn-control-plane/api.sock', '/tmp/x'];
    expect(written.map((path) => accessTo(plane, path))).toEqual(written.map(() => 'rw'));
    const others = ['/etc/cpn/x', '/var/lib/cpn/cpn0.json', '/run/cpn', '/proc/sys/net', '/etc/hosts'];
    expect(others.map((path) => accessTo(plane, path))).toEqual(others.map(() => 'ro'));
  });

  test('the folders of state and locks belong to root alone', () => {
    for (const service of [daemon, first]) {
      expect([service.get('StateDirectoryMode'), service.get('RuntimeDirectoryMode')]).toEqual([['0700'], ['0700']]);
      expect(service.get('UMask')).toEqual(['0077']);
    }
    expect([plane.get('StateDirectoryMode'), plane.get('UMask')]).toEqual([['0700'], ['0077']]);
  });
});

test('a unit with a line that is no setting is refused, and an empty value resets a list', () => {
  expect(() => parseUnit('[Service]\nProtectHome yes\n')).toThrow('neither a section nor a setting');
  expect(parseUnit('[Service]\nA=1\nA=\nA=2\n').get('Service')?.get('A')).toEqual(['2']);
});

describe('the files that keep other programs away from our interfaces', () => {
  const read = (path: string) => readFileSync(join(repository, 'packaging', path), 'utf8');

  test('match the names that a join chooses, and nothing else', () => {
    const networkd = parseUnit(read('networkd/10-cpn.network'));
    expect(networkd.get('Match')?.get('Name')).toEqual(['cpn*']);
    expect(networkd.get('Link')?.get('Unmanaged')).toEqual(['yes']);
    expect(read('network-manager/20-cpn.conf').replaceAll(/^#.*\n/gm, '')).toBe(
      '[device-cpn]\nmatch-device=interface-name:cpn*\nmanaged=0\n',
    );
  });
});
