import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SettingsFiles } from '../../../../src/host/linux/dns/settings.ts';
import { readStubSettings, readUsualSettings } from '../../../../src/host/linux/dns/stub-settings.ts';

const filesOf = (texts: Readonly<Record<string, string>>): SettingsFiles => ({
  read: (path) => texts[path] ?? '',
  list: (folder) =>
    Object.keys(texts).flatMap((path) => (path.startsWith(`${folder}/`) ? [path.slice(folder.length + 1)] : [])),
});
const serversOf = (program: string, argv: string[], texts: Readonly<Record<string, string>> = {}) => {
  const found = readStubSettings(program, argv, filesOf(texts));
  return found && [found.isComplete, ...found.forwarders.map(({ address, port }) => `${address}#${port}`)];
};

describe('the settings of dnsmasq', () => {
  test.each<[what: string, argv: string[], texts: Readonly<Record<string, string>>, expected: string[]]>([
    [
      'the command line',
      ['-S', '192.0.2.1', '--server=192.0.2.2#5353', '-S192.0.2.3'],
      {},
      ['192.0.2.1#53', '192.0.2.2#5353', '192.0.2.3#53'],
    ],
    [
      'servers of domains, and by an interface',
      ['--server=/corp.example/192.0.2.1@eth0', '-S', '/lan/'],
      {},
      ['192.0.2.1#53'],
    ],
    [
      'the usual file',
      [],
      { '/etc/dnsmasq.conf': 'no-resolv\nserver=192.0.2.1 # the office\n#server=192.0.2.9\nserver=fd00::53\n' },
      ['192.0.2.1#53', 'fd00::53#53'],
    ],
    [
      'the file of resolvconf',
      ['-r', '/run/dnsmasq/resolv.conf'],
      { '/run/dnsmasq/resolv.conf': 'nameserver 192.0.2.1\n' },
      ['192.0.2.1#53'],
    ],
    [
      'no more than eight lines of such a file, which DHCP writes',
      ['-r', '/run/x'],
      { '/run/x': Array.from({ length: 60 }, (_, at) => `nameserver 192.0.2.${at}\n`).join('') },
      Array.from({ length: 8 }, (_, at) => `192.0.2.${at}#53`),
    ],
    ['no such file with no-resolv', ['-R', '-r', '/run/x'], { '/run/x': 'nameserver 192.0.2.1\n' }, []],
    [
      'a folder, but for its exceptions',
      ['-7', '/etc/dnsmasq.d,.dpkg-old'],
      {
        '/etc/dnsmasq.d/a': 'server=192.0.2.1',
        '/etc/dnsmasq.d/b.dpkg-old': 'server=192.0.2.2',
        '/etc/dnsmasq.d/.c': 'server=192.0.2.3',
      },
      ['192.0.2.1#53'],
    ],
    [
      'files that name each other',
      ['-C', '/a'],
      { '/a': 'conf-file=/b\nserver=192.0.2.1', '/b': 'conf-file=/a' },
      ['192.0.2.1#53'],
    ],
    ['local=, as server=', ['--local=/b.example/192.0.2.1', '--local=/lan/'], {}, ['192.0.2.1#53']],
    [
      'rev-server=',
      ['--rev-server=192.0.2.0/24,192.0.2.1#5353@eth0', '--rev-server=192.0.2.0/24'],
      {},
      ['192.0.2.1#5353'],
    ],
    [
      'servers-file=',
      ['--servers-file=/etc/servers'],
      { '/etc/servers': 'server=/d.example/192.0.2.1\nrev-server=192.0.2.0/24,192.0.2.2\n' },
      ['192.0.2.1#53', '192.0.2.2#53'],
    ],
    [
      'quotes',
      [],
      { '/etc/dnsmasq.conf': 'server="/c.example/192.0.2.1" # "x"\nserver = "192.0.2.2#53"\ntxt-record="a #b"\n' },
      ['192.0.2.1#53', '192.0.2.2#53'],
    ],
    [
      'several letters in a word',
      ['-kC/a', '-kRr', '/b'],
      { '/a': 'server=192.0.2.1', '/b': 'nameserver 192.0.2.9' },
      ['192.0.2.1#53'],
    ],
    [
      'a folder of which only some names are read',
      ['--conf-dir=/d,*.conf'],
      { '/d/a.conf': 'server=192.0.2.1', '/d/b': 'server=192.0.2.2' },
      ['192.0.2.1#53'],
    ],
    [
      'a folder, but for what an editor left',
      ['-7/d'],
      { '/d/a': 'server=192.0.2.1', '/d/a~': 'server=192.0.2.2', '/d/#a#': 'server=192.0.2.3' },
      ['192.0.2.1#53'],
    ],
    ['a server of the usual ones', ['--server=/internal.example/#'], {}, []],
  ])('are read from %s', (_, argv, texts, expected) => {
    expect(serversOf('dnsmasq', ['/usr/sbin/dnsmasq', ...argv], texts)).toEqual([true, ...expected]);
  });

  test.each([
    ['a name', ['--server=dns.example']],
    ['a file that cannot be read', ['--conf-file=/home/user/dnsmasq.conf']],
    ['a file of servers that cannot be read', ['--servers-file=/run/servers']],
    ['a script', ['--conf-script=/usr/bin/make-config']],
  ])('are not complete with %s', (_, argv) => {
    expect(serversOf('dnsmasq', ['dnsmasq', ...argv])).toEqual([false]);
  });

  test('that NetworkManager tells it over D-Bus are those that it publishes', () => {
    const argv = ['dnsmasq', '--no-resolv', '--enable-dbus=org.freedesktop.NetworkManager.dnsmasq'];
    const published = { '/run/NetworkManager/no-stub-resolv.conf': 'nameserver 192.0.2.1\n' };
    expect(serversOf('dnsmasq', argv, published)).toEqual([true, '192.0.2.1#53']);
    expect(serversOf('dnsmasq', argv)).toEqual([false]);
    // Another program's dnsmasq has other servers.
    expect(serversOf('dnsmasq', ['dnsmasq', '-1'], published)).toEqual([false]);
  });
});

test('the settings of unbound are its forwarders, in all files that it includes', () => {
  const texts = {
    '/etc/unbound/unbound.conf': 'include-toplevel: "/etc/unbound/unbound.conf.d/*.conf"\n',
    '/etc/unbound/unbound.conf.d/office.conf':
      'forward-zone:\n  name: "."\n  forward-addr: 192.0.2.1@853#dns.example\n  # forward-addr: 192.0.2.9\n',
    '/etc/unbound/unbound.conf.d/old.bak': 'forward-addr: 192.0.2.8',
  };
  expect(serversOf('unbound', ['unbound', '-d'], texts)).toEqual([true, '192.0.2.1#853']);
  expect(serversOf('unbound', ['unbound', '-c', '/elsewhere'], texts)).toEqual([false]);
});

describe('the settings of unbound', () => {
  test.each<[what: string, text: string, expected: (string | boolean)[]]>([
    ['several options in a line', 'forward-zone: name: "b.example" forward-addr: 192.0.2.1', [true, '192.0.2.1#53']],
    [
      'no blanks',
      'forward-zone:name:"."forward-addr:192.0.2.1@5353#x\nstub-addr:fd00::53',
      [true, '192.0.2.1#5353', 'fd00::53#53'],
    ],
    ['quotes', `forward-addr: "192.0.2.1"\nstub-addr: '192.0.2.2'`, [true, '192.0.2.1#53', '192.0.2.2#53']],
    [
      'comments',
      '# forward-addr: 192.0.2.8\nname: a#b forward-addr: 192.0.2.1 # stub-addr: 192.0.2.9',
      [true, '192.0.2.1#53'],
    ],
    ['text in quotes', 'identity: "forward-addr: 192.0.2.9 # x" forward-addr: 192.0.2.1', [true, '192.0.2.1#53']],
    [
      'the server of a zone that is transferred',
      'auth-zone: name: b.example primary: 192.0.2.1',
      [true, '192.0.2.1#53'],
    ],
    [
      'the server of a zone in its older spelling',
      'auth-zone: name: b.example master: 192.0.2.1',
      [true, '192.0.2.1#53'],
    ],
    ['a server by its name', 'forward-host: dns.example', [false]],
    ['a server of a stub zone by its name', 'stub-host: dns.example', [false]],
    [
      'two files that name each other',
      'include: /etc/unbound/unbound.conf\nforward-addr: 192.0.2.1',
      [true, '192.0.2.1#53'],
    ],
    ['a file that cannot be read', 'include: /etc/unbound/other.conf', [false]],
    ['a pattern that is not understood', 'include: "/etc/*/[ab].conf"', [false]],
  ])('are read with %s', (_, text, expected) => {
    expect(
      serversOf('unbound', ['unbound'], { '/etc/unbound/unbound.conf': `server: verbosity: 1\n${text}\n` }),
    ).toEqual(expected);
  });

  test.each([[['-c/x']], [['-dc', '/x']], [['-dpc/x']], [['-d', '-c', '/x']]])(
    'are in the file that %j names',
    (argv) => {
      expect(serversOf('unbound', ['unbound', ...argv], { '/x': 'forward-addr: 192.0.2.1' })).toEqual([
        true,
        '192.0.2.1#53',
      ]);
    },
  );
});

test('a program whose settings are not known has none', () => {
  expect(serversOf('dnscrypt-proxy', ['dnscrypt-proxy'])).toBeNull();
});

test('where no program can be seen the usual files are read', () => {
  const { forwarders, isComplete } = readUsualSettings(
    filesOf({
      '/etc/dnsmasq.d/office': 'server=192.0.2.1',
      '/run/NetworkManager/no-stub-resolv.conf': 'nameserver 192.0.2.2\n',
      '/etc/unbound/unbound.conf': 'forward-addr: 192.0.2.3',
    }),
  );
  expect(isComplete).toBe(false);
  expect(forwarders.map(({ address }) => address)).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3']);
});

test('anything may be in them', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), fc.string(), (argv, text) => {
      for (const program of ['dnsmasq', 'unbound'])
        readStubSettings(program, argv, { read: () => text, list: () => ['a', 'b'] });
    }),
  );
});
