import { describe, expect, test } from 'vitest';
import {
  type Process,
  parseProcess,
  selectConflictingProcesses,
} from '../../../src/host/linux/conflicting-processes.ts';

describe('parseProcess', () => {
  test.each([
    // A name with brackets and a line's end, as a program may give itself.
    ['71 (a) b (x\n) S 1 71 71 0', 'a\0b\0', { pid: 71, parent: 1, name: 'a) b (x\n', args: ['a', 'b'] }],
    [
      '412 (NetworkManager) S 1 412 412 0',
      '/usr/sbin/NetworkManager\0--no-daemon\0',
      { pid: 412, parent: 1, name: 'NetworkManager', args: ['/usr/sbin/NetworkManager', '--no-daemon'] },
    ],
    ['9 (systemd-network) S 1 9 9', '/lib/systemd/systemd-networkd\0', { name: 'systemd-networkd' }],
    ['9 (fail2ban-server) S 1 9 9', '/usr/bin/python3\0/usr/bin/fail2ban-server\0', { name: 'fail2ban-server' }],
    [
      '9 (networkd-dispat) S 1 9 9',
      '/usr/bin/python3\0/usr/bin/networkd-dispatcher\0',
      { name: 'networkd-dispatcher' },
    ],
    ['9 (fifteen-letters) S 1 9 9', 'another\0', { name: 'fifteen-letters' }],
  ])('reads %j', (status, line, expected) => {
    expect(parseProcess(status, line)).toMatchObject(expected);
  });

  test('ignores kernel threads and anything invalid', () => {
    expect(parseProcess('88 (wg-crypt-wg0) I 2 0 0', '')).toBeNull();
    expect(parseProcess('', 'x\0')).toBeNull();
  });
});

describe('selectConflictingProcesses', () => {
  const at = (pid: number, parent: number, ...args: string[]): Process => ({ pid, parent, name: args[0] ?? '', args });
  const self = 10;
  const processes = [
    at(1, 0, 'systemd'),
    at(self, 1, 'node', 'cpn', 'run'),
    at(11, self, 'ip', 'link', 'add'),
    at(12, self, 'sh', 'hook'),
    at(13, 12, 'nft', '-f', '-'),
    at(20, 1, 'NetworkManager'),
    at(21, 20, 'dhclient', 'eth0'),
    at(30, 1, 'fix-routes', '--secret'),
    at(31, 30, 'ip', 'route', 'flush', 'table', 'main'),
    at(32, 1, 'iptables-restore'),
    at(33, 1, 'ip', 'monitor', 'link'),
    at(34, 30, 'wg', 'show', 'all'),
    at(40, 1, 'wg-quick', 'up', 'wg0'),
    at(41, 41, 'wg', 'set', 'wg0'),
    at(42, 1, 'bash'),
    at(43, 99, 'nft', 'flush', 'ruleset'),
  ];

  test('selects network daemons, running tools and their parents, and no process of ours', () => {
    const named = selectConflictingProcesses(processes, self).map(({ name, pid, startedBy }) => [
      name,
      pid,
      startedBy?.name,
    ]);
    expect(named).toEqual([
      ['NetworkManager', 20, undefined],
      ['dhclient', 21, undefined],
      ['ip', 31, 'fix-routes'],
      ['iptables-restore', 32, undefined],
      ['wg-quick', 40, undefined],
      ['wg', 41, 'wg'],
      ['nft', 43, undefined],
    ]);
  });

  const names = (...args: string[]) => selectConflictingProcesses([at(5, 1, ...args)], self).map(({ name }) => name);

  test.each(['ip', 'wg', 'nft', 'ifconfig', 'route', 'sysctl', 'nmcli', 'networkctl', 'iptables', 'ip6tables-restore'])(
    'selects %s while it changes something, and not while it only reads',
    (tool) => {
      expect(names(tool, 'set', 'x')).toEqual([tool]);
      for (const reading of ['monitor', 'show', 'list', 'get', '-L', '-S']) expect(names(tool, reading)).toEqual([]);
    },
  );

  test('selects daemons of each kind by their names alone, and whatever is called like wg-quick', () => {
    const daemons =
      'systemd-networkd dhcpcd cloud-init keepalived bird babeld firewalld dockerd kubelet tailscaled openvpn';
    for (const daemon of [...daemons.split(' '), 'wg-easy', 'wg-portal'])
      expect(names(daemon, 'show')).toEqual([daemon]);
    for (const other of ['wg-', 'wg-0', 'bash', 'systemd', 'iproute', 'ipset']) expect(names(other, 'set')).toEqual([]);
  });
});
