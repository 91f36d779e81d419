import { uptime } from 'node:os';
import { describe, expect, test, vi } from 'vitest';
import { MissingTool } from '../../../../src/core/errors/index.ts';
import { findActive, findActiveProgram, readDnsmasqArgs } from '../../../../src/host/linux/dns/active-program.ts';
import {
  findDnsmasqDomains,
  findDnsmasqFolders,
  findDomainsIn,
  readDnsmasqSettings,
} from '../../../../src/host/linux/dns/dnsmasq.ts';
import type { SettingsFiles } from '../../../../src/host/linux/dns/settings.ts';
import { findUnboundFolders, findZonesIn, readUnboundSettings } from '../../../../src/host/linux/dns/unbound.ts';
import type { Run } from '../../../../src/host/process/run.ts';

vi.mock(import('node:os'), { spy: true });

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

test('settings are unread beyond 200 files, of a script, and of a pattern', () => {
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`/etc/many/${at}`, 'user=x\n']));
  const dnsmasq = (text: string) => readDnsmasqSettings(['dnsmasq'], filesOf({ ...many, '/etc/dnsmasq.conf': text }));
  expect(dnsmasq('conf-dir=/etc/many\n').unread).toBe('it has more than 200 files');
  expect(dnsmasq('conf-script=/etc/x.sh\n').unread).toBe('it has a conf-script');
  expect(dnsmasq('conf-file=/etc/many/1\n').unread).toBeNull();
  const unbound = (text: string) => readUnboundSettings([], filesOf({ ...many, '/etc/unbound/unbound.conf': text }));
  expect(unbound('include: "/etc/many/*"\n').unread).toBe('it has more than 200 files');
  expect(unbound('include: "/etc/*/1"\n').unread).toBe('it includes /etc/*/1, which cpn does not read');
  expect(unbound('include: /etc/many/1\n').unread).toBeNull();
});

test('dnsmasq starts with errors in a file of servers alone', () => {
  const texts = { '/etc/dnsmasq.conf': 'conf-file=/etc/more\nservers-file=/etc/servers\n', '/etc/more': 'user=x\n' };
  const settings = readDnsmasqSettings(['dnsmasq'], filesOf({ ...texts, '/etc/servers': 'server=192.0.2.1\n' }));
  expect(settings.files).toEqual(['/etc/dnsmasq.conf', '/etc/more']);
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
    expect((await findActiveProgram(shown(states), read))?.program ?? null).toBe(program);
  });

  test('or not without systemd', async () => {
    const run = async () => {
      throw new MissingTool('systemctl', 'none');
    };
    expect(await findActiveProgram(run as Run, without)).toBeNull();
    expect(await findActive(run as Run, 'dnsmasq')).toBeNull();
    expect(await readDnsmasqArgs(run as Run)).toBeNull();
  });

  const unit = (text: string) => (async () => `Id=dnsmasq.service\nActiveState=active\n${text}`) as Run;
  const findStart = async (text: string) => (await findActiveProgram(unit(text), without))?.startedAt ?? 0;
  const monotonic = () => Number(process.hrtime.bigint() / 1000n);

  test('with its start in the present clock, also if the clock was wrong then', async () => {
    const minuteAgo = `InactiveExitTimestampMonotonic=${monotonic() - 60_000_000}\n`;
    for (const stated of ['Thu 1970-01-01 00:00:07 UTC', 'Fri 2099-01-02 03:04:05 CET', 'n/a']) {
      const age = Date.now() - (await findStart(`InactiveExitTimestamp=${stated}\n${minuteAgo}`));
      expect(Math.abs(age - 60_000)).toBeLessThan(500);
    }
    const booted = Date.now() - monotonic() / 1000;
    expect(Math.abs((await findStart('')) - booted)).toBeLessThan(500);
  });

  test('with its start before the host was suspended', async () => {
    const hour = 3600;
    vi.mocked(uptime).mockReturnValue(monotonic() / 1e6 + hour);
    const minuteAgo = `InactiveExitTimestampMonotonic=${monotonic() - 60_000_000}\n`;
    const stated = (seconds: number) => {
      const date = new Date(Date.now() - seconds * 1000);
      // In the local time zone.
      const text = new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString();
      return `InactiveExitTimestamp=Mon ${text.slice(0, 10)} ${text.slice(11, 19)} UTC\n${minuteAgo}`;
    };
    for (const [given, found] of [
      [1000, 1000],
      [9999, hour + 60],
      [5, 60],
    ] as const) {
      const age = (Date.now() - (await findStart(stated(given)))) / 1000;
      expect(Math.abs(age - found)).toBeLessThan(2);
    }
    vi.mocked(uptime).mockReset();
  });

  test('with the files of its unit that an administrator writes', async () => {
    const text = [
      ...['FragmentPath=/usr/lib/systemd/system/dnsmasq.service', 'DropInPaths=/etc/a.conf /usr/lib/b.conf'],
      ...['EnvironmentFiles=/etc/c (ignore_errors=yes)', 'EnvironmentFiles=/etc/d (ignore_errors=no)', ''],
    ].join('\n');
    const found = await findActiveProgram(unit(text), without);
    expect(found?.files).toEqual(['/etc/default/dnsmasq', '/etc/a.conf', '/etc/c', '/etc/d']);
  });

  const status = (line: string) =>
    (async () => `   Main PID: 7 (dnsmasq)\n     CGroup: /x\n             ${line}\n`) as Run;

  test.each([
    ['`-7 /usr/sbin/dnsmasq -x /run/x.pid -7 /etc/dnsmasq.d,.bak', ['-x', '/run/x.pid', '-7', '/etc/dnsmasq.d,.bak']],
    ['|-7 dnsmasq "--log-facility=/a b" -z', ['--log-facility=/a b', '-z']],
    ['`-7 /usr/sbin/dnsmasq', []],
    ['`-7 /bin/sh /usr/sbin/dnsmasq', null],
  ])('with the command line of its process: %s', async (line, args) => {
    expect(await readDnsmasqArgs(status(line))).toEqual(args);
  });
});
