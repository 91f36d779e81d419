import { describe, expect, test, vi } from 'vitest';
import type { HostEvent } from '../../../../src/host/host.ts';
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
