import { describe, expect, test } from 'vitest';
import { MissingTool } from '../../../../src/core/errors/index.ts';
import { dnsmasqArgs, findActiveProgram, isActive } from '../../../../src/host/linux/dns/active-program.ts';
import {
  findDnsmasqDomains,
  findDnsmasqFolders,
  findDomainsIn,
  findStartNeeds,
  readDnsmasqSettings,
} from '../../../../src/host/linux/dns/dnsmasq.ts';
import type { SettingsFiles } from '../../../../src/host/linux/dns/settings.ts';
import { findUnboundFolders, findZonesIn, readUnboundSettings } from '../../../../src/host/linux/dns/unbound.ts';
import type { Run } from '../../../../src/host/process/run.ts';

const name = 'cpn-cpn0.conf';

function filesOf(texts: Readonly<Record<string, string>>): SettingsFiles {
  const list = (folder: string) =>
    Object.keys(texts).flatMap((path) => (path.startsWith(`${folder}/`) ? [path.slice(folder.length + 1)] : []));
  return { read: (path) => texts[path] ?? '', list };
}

describe('the folder of dnsmasq', () => {
  test.each([
    ['on the command line', ['dnsmasq', '-7', '/etc/dnsmasq.d,.dpkg-dist,.dpkg-old'], {}, '/etc/dnsmasq.d'],
    ['as a long option', ['dnsmasq', '--conf-dir=/etc/dnsmasq.d/'], {}, '/etc/dnsmasq.d'],
    ['in its file', ['dnsmasq'], { '/etc/dnsmasq.conf': 'conf-dir=/etc/dnsmasq.d/,*.conf\n' }, '/etc/dnsmasq.d'],
    ['in a commented line', ['dnsmasq'], { '/etc/dnsmasq.conf': '#conf-dir=/etc/dnsmasq.d/,*.conf\n' }, null],
    ['without a name like ours', ['dnsmasq', '-7', '/etc/a,*.d', '-7', '/etc/b,.conf', '-7', '/etc/c'], {}, '/etc/c'],
    ['nowhere', ['dnsmasq', '--conf-file=/dev/null'], { '/etc/dnsmasq.conf': 'conf-dir=/etc/dnsmasq.d\n' }, null],
    ['relative', ['dnsmasq', '-7', 'dnsmasq.d'], {}, null],
  ])('%s', (_, argv, texts, folder) => {
    expect(findDnsmasqFolders(readDnsmasqSettings(argv, filesOf(texts)), name)[0] ?? null).toBe(folder);
  });
});

describe('the folder of unbound', () => {
  const main = '/etc/unbound/unbound.conf';
  test.each([
    ['of Debian', [], 'include-toplevel: "/etc/unbound/unbound.conf.d/*.conf"\n', '/etc/unbound/unbound.conf.d'],
    [
      'of Fedora',
      ['unbound', '-d'],
      'server:\n include: /etc/unbound/keys.d/*.key\n include: /etc/unbound/local.d/*.conf\n',
      '/etc/unbound/local.d',
    ],
    ['not with single files', [], 'include: /etc/unbound/a.conf\n', null],
    ['not of another main file', ['unbound', '-c', '/etc/other'], 'include: "/etc/unbound/*.conf"\n', null],
    ['not without any', [], 'server:\n', null],
  ])('%s', (_, argv, text, folder) => {
    const settings = readUnboundSettings(argv, filesOf({ [main]: text, '/etc/other': text }));
    expect(findUnboundFolders(settings, name)[0] ?? null).toBe(folder);
  });

  test('with the domains of its zones', () => {
    const text =
      'forward-zone:\n name: "Corp.Example."\nstub-zone: name: x.example\nserver: local-zone: "lan." static\n';
    expect(findZonesIn(text)).toEqual(['corp.example', 'x.example', 'lan']);
    expect(readUnboundSettings([], filesOf({ [main]: text })).domains).toEqual(['corp.example', 'x.example', 'lan']);
  });
});

test('domains with servers, or answers, of their own', () => {
  const text =
    'server=/Corp.Example/x.example/192.0.2.53\nlocal=/lan/\naddress=/ads.example/0.0.0.0\nserver=192.0.2.1\n';
  const others = 'domain=y.lan,192.168.77.0/24,local\ndomain=z.lan\nrev-server=192.168.50.0/24,192.0.2.53\n';
  const none = 'rev-server=nowhere,192.0.2.53\n';
  expect(findDomainsIn(others + none)).toEqual(['y.lan', '50.168.192.in-addr.arpa']);
  const domains = ['corp.example', 'x.example', 'lan', 'ads.example'];
  expect(findDomainsIn(text)).toEqual(domains);
  const files = filesOf({ '/etc/dnsmasq.conf': 'conf-dir=/etc/dnsmasq.d\n', '/etc/dnsmasq.d/x': text });
  const settings = readDnsmasqSettings(['dnsmasq', '-S', '/first.example/192.0.2.1'], files);
  expect(findDnsmasqDomains(settings)).toEqual(['first.example', ...domains]);
});

test('the domains of dnsmasq include those of a blocklist with 300,000 lines', () => {
  const files = filesOf({ '/etc/dnsmasq.conf': 'address=/ads.example/\n'.repeat(300_000) });
  const settings = readDnsmasqSettings(['dnsmasq', '-S', '/first.example/192.0.2.1'], files);
  expect(findDnsmasqDomains(settings)).toHaveLength(300_001);
});

describe('the program of a resolver is found by its unit', () => {
  const shown = (states: Readonly<Record<string, string>>) =>
    (async (_program, args) => {
      const units = args.filter((each) => each.endsWith('.service'));
      const blocks = units.map(
        (unit) => `Id=${unit}\nActiveState=${states[unit.replace('.service', '')] ?? 'inactive'}`,
      );
      return `${blocks.join('\n\n')}\n`;
    }) as Run;
  const withPid = filesOf({ '/run/NetworkManager/dnsmasq.pid': '7\n' }).read;
  const without = filesOf({}).read;

  test.each([
    ['dnsmasq', { dnsmasq: 'active' }, without, 'dnsmasq'],
    ['a dnsmasq that reads its settings', { dnsmasq: 'reloading' }, without, 'dnsmasq'],
    ['unbound', { unbound: 'active', dnsmasq: 'failed' }, without, 'unbound'],
    ['NetworkManager with a dnsmasq', { NetworkManager: 'active' }, withPid, 'NetworkManager'],
    ['NetworkManager without one', { NetworkManager: 'active' }, without, null],
    ['none', { dnsmasq: 'inactive' }, withPid, null],
  ])('%s', async (_, states, read, program) => {
    expect(await findActiveProgram(shown(states), read)).toBe(program);
  });

  test('or not without systemd', async () => {
    const run = async () => {
      throw new MissingTool('systemctl', 'none');
    };
    expect(await findActiveProgram(run as Run, without)).toBeNull();
    expect(await isActive(run as Run, 'dnsmasq')).toBe(false);
  });

  test.each([
    ['CONFIG_DIR=/etc/dnsmasq.d,.dpkg-dist\n', ['-7', '/etc/dnsmasq.d,.dpkg-dist']],
    ['#CONFIG_DIR=/x\nCONFIG_DIR=/y\nCONFIG_DIR="/etc/dnsmasq.d,.dpkg-dist"\n', ['-7', '/etc/dnsmasq.d,.dpkg-dist']],
    ["DNSMASQ_OPTS='--server=/corp.lan/192.0.2.53 -z'\n", ['--server=/corp.lan/192.0.2.53', '-z']],
    ['#CONFIG_DIR=/x\n', []],
  ])('with the command line that Debian sets: %j', (text, args) => {
    expect(dnsmasqArgs(filesOf({ '/etc/default/dnsmasq': text }).read)).toEqual(args);
  });
});

describe('what dnsmasq does not start without', () => {
  const needs = (text: string, ...args: string[]) =>
    findStartNeeds(readDnsmasqSettings(['dnsmasq', ...args], filesOf({ '/etc/dnsmasq.conf': text }))).map(
      ([option, value]) => `${option} ${value}`,
    );

  test('addresses and interfaces that it binds to', () => {
    const text = 'bind-interfaces\nlisten-address=127.0.0.1,172.18.0.1\nlisten-address=::1\ninterface=lo, br-a\n';
    const bound = ['listen-address 127.0.0.1', 'listen-address 172.18.0.1', 'listen-address ::1'];
    expect(needs(text)).toEqual([...bound, 'interface lo', 'interface br-a']);
    expect(needs('', '-zi', 'br-a', '-a', '172.18.0.1')).toEqual(['interface br-a', 'listen-address 172.18.0.1']);
    expect(needs('bind-dynamic\nlisten-address=172.18.0.1\ninterface=br-a\n')).toEqual([]);
  });

  test('its user, its group and folders for its files, where a file wins over the command line', () => {
    expect(needs('user=one\ngroup=two\n', '-u', 'three', '-x', '/run/a/b')).toEqual([
      ...['user one', 'group two', 'pid-file /run/a/b'],
    ]);
    expect(needs('log-facility=/a/b\n')).toEqual(['log-facility /a/b']);
    expect(needs('log-facility=local0\nuser=\n')).toEqual([]);
  });

  test('the folder of its leases, if it has any', () => {
    expect(needs('dhcp-leasefile=/a/b\n')).toEqual([]);
    expect(needs('dhcp-leasefile=/a/b\ndhcp-range=::,ra-only\n')).toEqual([]);
    expect(needs('dhcp-range=10.0.0.1,10.0.0.9\nleasefile-ro\n', '-l', '/a/b')).toEqual([]);
    expect(needs('dhcp-range=10.0.0.1,10.0.0.9\n', '-l', '/a/b')).toEqual(['dhcp-leasefile /a/b']);
  });
});
