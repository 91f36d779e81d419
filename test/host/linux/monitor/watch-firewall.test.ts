import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { HostEvent } from '../../../../src/host/host.ts';
import { isFirewallLossReport, parseFirewallEvent } from '../../../../src/host/linux/monitor/events.ts';
import { Machine } from '../../machine.ts';
import { hide } from '../../steps.ts';
import { bounded, eventsOf, meets, pidsOf, sees, startWatcher } from '../../watching.ts';

vi.setConfig({ testTimeout: 60_000 });

const monitors = (machine: Machine) => pidsOf(machine, 'nft monitor ruleset');

/** A table like ours, and one of another program. */
const tables = (link: string) => `nft -f - <<X
  table inet cpn_${link} {
    chain forward {
      type filter hook forward priority -150; policy accept;
      oifname "${link}" counter comment "cpn clamp-mss 01234567"
    }
  }
  table ip nat {
    chain DOCKER {
      oifname "inet cpn_${link}" drop comment "cpn_${link}"
    }
  }
X
`;

describe('watching the packet rules of a real Linux host', () => {
  test('reports each change of a table of ours', async () => {
    await using machine = await Machine.start();
    await machine.sh(tables('wg0') + tables('wg0.1'));
    const watcher = await startWatcher(machine, 'watchFirewall');
    const announced = async (script: string, link: string, removed = false) => {
      await machine.sh(script);
      await meets(watcher, 'firewall', link, removed);
    };
    await announced('nft add rule inet cpn_wg0 forward tcp dport 22 drop', 'wg0');
    await announced('nft delete rule inet cpn_wg0 forward handle 2', 'wg0', true);
    await announced("nft 'chain inet cpn_wg0 forward { policy drop; }'", 'wg0');
    await announced("nft 'add table inet cpn_wg0 { flags dormant; }'", 'wg0');
    await announced('nft flush table inet cpn_wg0', 'wg0', true);
    await announced('nft delete table inet cpn_wg0', 'wg0', true);
    await announced(tables('wg0'), 'wg0');
    await announced('nft flush ruleset', 'wg0.1', true);
    // The watch outlives a ruleset of which nothing is left.
    await announced(tables('wg1'), 'wg1');
    expect(new Set(eventsOf(watcher).map(({ kind }) => kind))).toEqual(new Set(['firewall']));
  });

  test('reports nothing while other programs change their tables', async () => {
    await using machine = await Machine.start();
    await machine.sh(tables('wg0'));
    const watcher = await startWatcher(machine, 'watchFirewall');
    await machine.sh(`nft add rule ip nat DOCKER oifname cpn_wg0 drop comment '"add table inet cpn_wg0"'
      nft add chain ip nat cpn_wg0; nft add table ip cpn_wg0; nft add table inet filter; nft delete chain ip nat cpn_wg0
      ip link add v0 type veth peer name v1; nft add table inet cpn_last`);
    await meets(watcher, 'firewall', 'last');
    expect(eventsOf(watcher)).toEqual<HostEvent[]>([{ kind: 'firewall', link: 'last', removed: false }]);
  });

  test('reports without a link that another program filters forwarded packets', async () => {
    await using machine = await Machine.start();
    const watcher = await startWatcher(machine, 'watchFirewall');
    const announced = async (script: string, removed = false) => {
      await machine.sh(script);
      await meets(watcher, 'firewall', null, removed);
    };
    await announced("nft 'table ip a { chain f { type filter hook forward priority 0; policy drop; }; }'");
    await announced("nft 'chain ip a f { policy accept; }'");
    await announced('nft delete table ip a', true);
  });

  test('restarts when its process is killed', async () => {
    await using machine = await Machine.start();
    const watcher = await startWatcher(machine, 'watchFirewall');
    const [killed] = await monitors(machine);
    await machine.sh(`kill -KILL ${killed}`);
    await meets(watcher, 'link', null);
    await machine.sh('nft add table inet cpn_wg0');
    await meets(watcher, 'firewall', 'wg0');
    expect(await monitors(machine)).toHaveLength(1);
  });

  test('leaves no process behind when it is closed', async () => {
    await using machine = await Machine.start();
    const watcher = await startWatcher(machine, 'watchFirewall');
    expect(await monitors(machine)).toHaveLength(1);
    watcher.closeInput();
    await sees(watcher, 'closed');
    expect(await monitors(machine)).toEqual([]);
    expect((await watcher.endWithin(bounded.timeout)).exitCode).toBe(0);
  });

  test('needs nft', async () => {
    await using machine = await Machine.start();
    await machine.sh(hide('nft'));
    await expect(machine.host.watchFirewall(() => {})).rejects.toMatchObject({
      name: 'MissingTool',
      facts: { tool: 'nft' },
    });
  });
});

/** Printed by `nft monitor ruleset` of nftables 1.0.6, with what is to be read from it. */
const recorded: readonly [string, string, boolean][] = [
  ['add table inet cpn_cpn0', 'cpn0', false],
  ['add table inet cpn_cpn0 { flags dormant; }', 'cpn0', false],
  ['add chain inet cpn_cpn0 forward { type filter hook forward priority mangle; policy drop; }', 'cpn0', false],
  [
    'add rule inet cpn_cpn0 forward oifname "cpn0" tcp flags syn / syn,rst tcp option maxseg size set rt mtu comment "cpn clamp-mss 01234567"',
    'cpn0',
    false,
  ],
  ['add set inet cpn_cpn0 bb { type ipv4_addr; } ', 'cpn0', false],
  ['add element inet cpn_cpn0 bb { 1.2.3.4 }', 'cpn0', false],
  ['add counter inet cpn_cpn0 cc { packets 0 bytes 0 } ', 'cpn0', false],
  ['delete rule inet cpn_wg0.1 forward handle 3', 'wg0.1', true],
  ['delete chain inet cpn_cpn0 postrouting', 'cpn0', true],
  ['delete table inet cpn_wg-x', 'wg-x', true],
  ['delete table inet cpn_a_b', 'a_b', true],
];

describe('parseFirewallEvent', () => {
  test.each(recorded)('reads %j', (line, link, removed) => {
    expect(parseFirewallEvent(line)).toEqual({ kind: 'firewall', link, removed });
  });

  test.each([
    '',
    '# new generation 2 by process 24427 (nft)',
    'add table ip cpn_cpn0',
    'add chain ip nat cpn_cpn0',
    'add rule ip nat DOCKER oifname "inet cpn_cpn0" drop',
    'add rule inet filter DOCKER ip daddr 1.2.3.4 drop comment "add table inet cpn_cpn0"',
    'add rule inet filter cpn_cpn0 drop',
    'add chain ip filter FORWARD { }',
    'add chain inet home output { type filter hook output priority filter; policy drop; }',
    'add chain inet home pre { type filter hook prerouting priority raw; comment "{ type filter hook forward " }',
    'add chain bridge home forward { type filter hook forward priority filter; policy drop; }',
    'add rule ip filter FORWARD counter packets 0 bytes 0 jump DOCKER-USER',
    'delete chain ip filter DOCKER',
    'delete table ip6 filter',
    'table inet cpn_cpn0 {',
  ])('ignores %j', (line) => {
    expect(parseFirewallEvent(line)).toBeNull();
  });

  test.each([
    ['add chain ip filter FORWARD { type filter hook forward priority filter; policy drop; }', false],
    ['add chain ip filter INPUT { type filter hook input priority filter; policy drop; }', false],
    ['add chain inet e c { type filter hook forward priority filter - 5; policy accept; }', false],
    ['delete table ip filter', true],
    ['delete table ip cpn_cpn0', true],
    ['delete table inet cpn_', true],
    ['delete table inet cpn', true],
    ['delete table inet cpn_of_another_program', true],
    ['delete table inet xcpn_cpn0', true],
  ])('takes %j for a change by another program', (line, removed) => {
    expect(parseFirewallEvent(line)).toEqual({ kind: 'firewall', link: null, removed });
  });

  test('detects the report of a loss', () => {
    const line = '# ERROR: We lost some netlink events!';
    expect([isFirewallLossReport(line), parseFirewallEvent(line)]).toEqual([true, null]);
    expect(recorded.filter(([each]) => isFirewallLossReport(each))).toEqual([]);
  });

  test('parses any line', () => {
    const part = fc.constantFrom(...recorded.flatMap(([line]) => line.split(/(?<=[ _])/)), '\t', '🦀', '\u{1b}[31m');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        expect(parseFirewallEvent(parts.join(''))?.link ?? 'v0').toMatch(/^[\w.-]{1,15}$/);
      }),
    );
  });
});
