import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  describeDrop,
  describeInbound,
  describeRemedy,
  describeUnread,
} from '../../../../src/core/forward/foreign/describe-drop.ts';
import { findForeignDrops } from '../../../../src/core/forward/foreign/foreign-drops.ts';
import type { InboundPath } from '../../../../src/core/forward/foreign/inbound-path.ts';
import type { ForwardPath } from '../../../../src/core/forward/foreign/path.ts';
import { parseFilterTables } from '../../../../src/host/linux/nft/filter-tables.ts';
import { hasLegacyTables, parseLegacyTables } from '../../../../src/host/linux/nft/legacy-tables.ts';
import { prefix } from '../../../core/samples.ts';

/** What `iptables-legacy-save` 1.8.9 printed of the rules that Docker 20 writes for a container with a published port. */
const docker = await readFile(join(import.meta.dirname, 'rulesets', 'docker-legacy.save'), 'utf8');

const [network, lan] = [prefix('10.77.0.0/24'), prefix('192.168.50.0/24')];
const forward: ForwardPath[] = [
  { iif: 'cpn0', oif: 'eth1', from: network, to: lan, state: 'new' },
  { iif: 'eth1', oif: 'cpn0', from: lan, to: network, state: 'established' },
];
const inbound: InboundPath[] = [
  { iif: 'eth0', oif: '', from: prefix('0.0.0.0/0'), to: prefix('203.0.113.5/32'), state: 'new', port: 51820 },
];
const judge = (tables: Parameters<typeof findForeignDrops>[0]) =>
  findForeignDrops(tables, 'cpn0', { forward, inbound });
const filter = (...lines: readonly string[]) => parseLegacyTables(['*filter', ...lines, 'COMMIT', ''].join('\n'));

describe('rules of iptables-legacy', () => {
  test('that leave packets untracked are found for a closed network, unless they are of another interface', () => {
    const bypasses = (rule: string) => {
      const tables = parseLegacyTables(`*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING ${rule}\nCOMMIT\n`);
      return findForeignDrops(tables, 'cpn0', { forward: [], inbound: [], inside: [network] }).bypasses;
    };
    const found = { family: 'ip', table: 'raw', chain: 'PREROUTING', isLegacy: true, effect: 'untracks' };
    expect(bypasses('-p udp -m udp --dport 53 -j NOTRACK')).toEqual([found]);
    expect(bypasses('-p udp -m udp --dport 53 -j CT --notrack')).toEqual([found]);
    expect(bypasses('-p tcp -m tcp --dport 21 -j CT --helper ftp')).toEqual([]);
    expect(bypasses('-i eth0 -j NOTRACK')).toEqual([found]);
    expect(bypasses('-i eth0 -o eth1 -j NOTRACK')).toEqual([]);
  });

  test('of docker drop what a connector forwards, until they accept it', () => {
    const [drop, ...others] = judge(parseLegacyTables(docker)).forward;
    expect(others).toEqual([]);
    expect(drop && `${describeDrop(drop)}; ${drop.remedy}`).toBe(
      'packets to and from 192.168.50.0/24 do not get through table filter of iptables-legacy, probably made by docker (policy drop of chain FORWARD); "iptables-legacy -I DOCKER-USER -i cpn0 -j ACCEPT && iptables-legacy -I DOCKER-USER -o cpn0 -j ACCEPT" lets them through',
    );
    const accepts = '-A DOCKER-USER -i cpn0 -j ACCEPT\n-A DOCKER-USER -o cpn0 -j ACCEPT\n-A DOCKER-USER -j RETURN';
    expect(judge(parseLegacyTables(docker.replace('-A DOCKER-USER -j RETURN', accepts))).forward).toEqual([]);
  });

  test('drop what comes to the listen port', () => {
    const found = judge(filter(':INPUT DROP [0:0]', '-A INPUT -p udp -m udp --dport 53 -j ACCEPT')).inbound;
    expect(found && `${describeInbound(found)}; ${describeRemedy(found, 'cpn0')}`).toBe(
      'table filter of iptables-legacy drops UDP to port 51820 (policy drop of chain INPUT): other hosts cannot start a session with this one; "iptables-legacy -I INPUT -p udp --dport 51820 -j ACCEPT" lets it in',
    );
  });

  test.each([
    ['-A FORWARD -s 10.0.0.0/8 -j DROP', 'new'],
    ['-A FORWARD ! -s 10.0.0.0/8 -j DROP', 'established'],
    ['-A FORWARD -i cp+ ! -o eth0 -j REJECT --reject-with icmp-port-unreachable', 'new'],
    ['-A FORWARD -m conntrack ! --ctstate RELATED,ESTABLISHED -m comment --comment "a \\" -j b" -j DROP', 'new'],
    ['-A FORWARD -j LOG --log-prefix "x -j DROP"', ''],
    ['-A FORWARD -m set --match-set bad src -j DROP', ''],
    ['-A FORWARD -m limit --limit 5/sec -j DROP', ''],
    ['-A FORWARD -p tcp -m tcp --dport 22 -j DROP', ''],
    ['-A FORWARD -j UNKNOWN\n-A FORWARD -j DROP', ''],
    ['-A FORWARD -g mine\n-A FORWARD -j DROP\n-A mine -i cpn0 -j DROP', 'new'],
  ])('%s', (rules, dropped) => {
    const { forward: drops } = judge(filter(':FORWARD ACCEPT [0:0]', ':mine - [0:0]', rules));
    expect(drops.flatMap(({ paths }) => paths.map(({ state }) => state)).join()).toBe(dropped);
  });

  test('are looked for where the kernel lists a table that filters, and are unknown where they cannot be read', () => {
    expect(['', 'nat\n', 'nat\nfilter\n', 'raw\n', 'constructor\n'].map(hasLegacyTables)).toEqual([
      ...[false, false, true, true, false],
    ]);
    expect(['mangle\n', 'security\n'].map(hasLegacyTables)).toEqual([true, true]);
    const { unread, ...drops } = judge([null]);
    expect(drops).toEqual({ forward: [], inbound: null });
    expect(unread && [unread.forward, unread.inbound].map((each) => describeUnread(each)?.remedy)).toEqual([
      'see what they drop: iptables-legacy -S',
      'see what they drop: iptables-legacy -S',
    ]);
  });
});

describe('a rule of iptables-legacy', () => {
  const read = (rule: string) => filter(':mine - [0:0]', rule)[0]?.chains.get('mine')?.rules ?? [];
  const conditionsOf = (words: string) => read(`-A mine ${words} -j DROP`)[0]?.conditions;

  test.each([
    ['-i cpn0', [{ on: 'iif', not: false, names: ['cpn0'] }]],
    ['! -i cpn0', [{ on: 'iif', not: true, names: ['cpn0'] }]],
    ['-o eth+', [{ on: 'oif', not: false, names: ['eth*'] }]],
    // Only the next option is inverted.
    [
      '! -i cpn0 -o eth0',
      [
        { on: 'iif', not: true, names: ['cpn0'] },
        { on: 'oif', not: false, names: ['eth0'] },
      ],
    ],
    ['-p udp', [{ on: 'protocol', not: false, names: ['udp'] }]],
    ['-p 17', [{ on: 'protocol', not: false, names: ['udp'] }]],
    ['-p 6', [{ on: 'protocol', not: false, names: ['tcp'] }]],
    ['-p 1', [{ on: 'protocol', not: false, names: ['icmp'] }]],
    ['-p 58', [{ on: 'protocol', not: false, names: ['ipv6-icmp'] }]],
    ['-p esp', [{ on: 'protocol', not: false, names: ['esp'] }]],
    ['--dport 51820', [{ on: 'port', not: false, ranges: [{ first: 51820, last: 51820 }] }]],
    [
      '! --dports 53,1000:2000',
      [
        {
          ...{ on: 'port', not: true },
          ranges: [
            { first: 53, last: 53 },
            { first: 1000, last: 2000 },
          ],
        },
      ],
    ],
    ['--dport domain', [{ on: 'unknown' }]],
    ['--sport 53', [{ on: 'unknown' }]],
    ['-s not-an-address', [{ on: 'unknown' }]],
    ['-f', [{ on: 'unknown' }]],
  ])('%s is read', (words, expected) => {
    expect(conditionsOf(words)).toEqual(expected);
  });

  test.each(['--state', '--ctstate'])('%s names every state of a connection, and no other word', (option) => {
    for (const state of ['NEW', 'ESTABLISHED', 'RELATED', 'INVALID', 'UNTRACKED'])
      expect(conditionsOf(`${option} ${state}`)).toEqual([{ on: 'state', not: false, states: [state.toLowerCase()] }]);
    expect(conditionsOf(`${option} RELATED,DNAT`)).toEqual([{ on: 'unknown' }]);
  });

  test('loads a match whose options follow, and is unknown with any other', () => {
    for (const match of ['tcp', 'udp', 'multiport', 'conntrack', 'state', 'comment'])
      expect([match, conditionsOf(`-m ${match}`)]).toEqual([match, []]);
    for (const match of ['set', 'limit', 'mark', 'addrtype', 'physdev', 'u32'])
      expect([match, conditionsOf(`-m ${match}`)]).toEqual([match, [{ on: 'unknown' }]]);
  });

  test.each([
    ['-j ACCEPT', { does: 'accept' }],
    ['-j DROP', { does: 'drop' }],
    ['-j REJECT --reject-with icmp-port-unreachable', { does: 'reject' }],
    ['-j RETURN', { does: 'return' }],
    ['-j DOCKER-USER', { does: 'jump', chain: 'DOCKER-USER' }],
    ['-j NFQUEUE --queue-num 0', { does: 'jump', chain: 'NFQUEUE' }],
    ['-g later', { does: 'goto', chain: 'later' }],
  ])('%s is its verdict', (words, verdict) => {
    expect(read(`-A mine ${words}`)).toEqual([{ conditions: [], verdict }]);
  });

  test('goes on with the next one after a target that only does something', () => {
    const targets = 'LOG NFLOG TRACE MARK CONNMARK CT TCPMSS CLASSIFY DSCP TOS TTL SET AUDIT CHECKSUM SECMARK';
    for (const target of `${targets} CONNSECMARK LED RATEEST TEE`.split(' '))
      expect([target, read(`-A mine -j ${target} --some option`)]).toEqual([target, []]);
    expect(read('-A mine -i eth0')).toEqual([]);
  });

  test('is at the hook of its chain, by the order of the tables', () => {
    const chainsOf = (table: string) => {
      const text = [`*${table}`, ':PREROUTING DROP [0:0]', ':FORWARD DROP [0:0]', ':INPUT ACCEPT [0:0]'];
      const [found] = parseLegacyTables([...text, ':POSTROUTING ACCEPT [0:0]', ':own - [0:0]', 'COMMIT'].join('\n'));
      return [...(found?.chains.values() ?? [])].map(({ hook, priority, policy }) => [hook, priority, policy]);
    };
    for (const [table, priority] of [
      ['raw', -300],
      ['mangle', -150],
      ['filter', 0],
      ['security', 50],
    ] as const)
      expect([table, chainsOf(table)]).toEqual([
        table,
        [
          ['prerouting', priority, 'drop'],
          ['forward', priority, 'drop'],
          ['input', priority, 'accept'],
          ['postrouting', priority, 'accept'],
          [null, 0, 'accept'],
        ],
      ]);
    expect(parseLegacyTables('*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n')).toEqual([]);
  });
});

describe('the table with which firewalld closes a host', () => {
  const table = (name: string, hook: string, prio: number) => {
    const place = { family: 'inet', table: 'firewalld_policy_drop' };
    const chain = { ...place, name, type: 'filter', hook, prio, policy: 'drop' };
    return parseFilterTables(
      JSON.stringify({ nftables: [{ table: { family: 'inet', name: place.table } }, { chain }] }),
    );
  };

  test('has the remedy of panic mode, and no rule that would open a part of the host', () => {
    const found = judge(table('raw_prerouting', 'prerouting', -291));
    expect(found.forward.map(({ author, remedy }) => [author, remedy])).toEqual([
      ['firewalld in panic mode', '"firewall-cmd --panic-off" ends it'],
    ]);
    expect(found.inbound && `${describeInbound(found.inbound)}; ${describeRemedy(found.inbound, 'cpn0')}`).toBe(
      'firewalld in panic mode drops UDP to port 51820 (nft table inet firewalld_policy_drop, policy drop of chain raw_prerouting): other hosts cannot start a session with this one; "firewall-cmd --panic-off" lets it in',
    );
  });

  test('is left out during a reload, which ends by itself', () => {
    expect(judge([...table('filter_forward', 'forward', 0), ...table('filter_input', 'input', 0)])).toEqual({
      forward: [],
      inbound: null,
    });
  });
});
