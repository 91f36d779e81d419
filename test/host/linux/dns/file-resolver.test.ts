import { describe, expect, test } from 'vitest';
import { MissingTool } from '../../../../src/core/errors/index.ts';
import { dnsmasqArgs, findActiveProgram, isActive } from '../../../../src/host/linux/dns/active-program.ts';
import {
  findBoundAddresses,
  findDnsmasqDomains,
  findDnsmasqFolders,
  findDomainsIn,
} from '../../../../src/host/linux/dns/dnsmasq.ts';
import type { SettingsFiles } from '../../../../src/host/linux/dns/settings.ts';
import { findUnboundDomains, findUnboundFolders, findZonesIn } from '../../../../src/host/linux/dns/unbound.ts';
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
    expect(findDnsmasqFolders(argv, filesOf(texts), name)[0] ?? null).toBe(folder);
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
    expect(findUnboundFolders(argv, filesOf({ [main]: text, '/etc/other': text }), name)[0] ?? null).toBe(folder);
  });

  test('with the domains of its zones', () => {
    const text =
      'forward-zone:\n name: "Corp.Example."\nstub-zone: name: x.example\nserver: local-zone: "lan." static\n';
    expect(findZonesIn(text)).toEqual(['corp.example', 'x.example', 'lan']);
    expect(findUnboundDomains([], filesOf({ [main]: text }))).toEqual(['corp.example', 'x.example', 'lan']);
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
  expect(findDnsmasqDomains(['dnsmasq', '-S', '/first.example/192.0.2.1'], files)).toEqual([
    'first.example',
    ...domains,
  ]);
});

test('the domains of dnsmasq include those of a blocklist with 300,000 lines', () => {
  const files = filesOf({ '/etc/dnsmasq.conf': 'address=/ads.example/\n'.repeat(300_000) });
  expect(findDnsmasqDomains(['dnsmasq', '-S', '/first.example/192.0.2.1'], files)).toHaveLength(300_001);
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

test('the addresses without which dnsmasq does not start', () => {
  const bound = (text: string) => findBoundAddresses(['dnsmasq'], filesOf({ '/etc/dnsmasq.conf': text }));
  expect(bound('bind-interfaces\nlisten-address=127.0.0.1,172.18.0.1\nlisten-address=::1\n')).toEqual([
    ...['127.0.0.1', '172.18.0.1', '::1'],
  ]);
  expect(bound('bind-dynamic\nlisten-address=172.18.0.1\n')).toEqual([]);
});
