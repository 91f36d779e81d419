import { describe, expect, test, vi } from 'vitest';
import { routeProtocol, tunnelMark, tunnelTable } from '../../src/core/host-state/marks.ts';
import { parseAddress, parsePrefix } from '../../src/core/net/cidr.ts';
import type { LinkCommand } from '../../src/core/reconcile/step.ts';
import { findOurRules, mainRule, tunnelRule, tunnelRules } from '../../src/core/routing/tunnel-rules.ts';
import { Machine } from './machine.ts';
import { newKeyPair } from './samples.ts';
import { address, configure, create, destroy, question, settle, traces } from './steps.ts';

vi.setConfig({ testTimeout: 60_000 });

// Without duplicate address detection the link-local addresses stay as they are. A worker of the kernel adds them.
const uplink = `echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad; ip link add v0 type veth peer name v1; ip link set v1 up; ip link set v0 up
  ip address add 203.0.113.5/24 dev v0; ip route add default via 203.0.113.1
  for n in $(seq 100); do [ "$(ip -6 -o address show scope link | wc -l)" = 2 ] && break; sleep 0.1; done`;
const everywhere = `${traces}; ip rule; ip -6 rule`;

const prefix = parsePrefix('0.0.0.0/0');
const api = parseAddress('198.51.100.80');
const outside = '198.51.100.9';
const addRoute: LinkCommand = { add: 'route', prefix, table: tunnelTable };

/** Brings up a device that is marked, and leads nowhere yet. */
async function start({ host }: Machine): Promise<void> {
  await host.apply(create);
  await host.apply(configure({ privateKey: newKeyPair().privateKey, fwmark: tunnelMark }));
  await host.apply(settle({ add: 'address', address }, { set: 'up' }));
}

describe('a full tunnel on a real host', () => {
  test('routes everything but what is excluded, is observed as configured, and is removed without a trace', async () => {
    await using machine = await Machine.start();
    const { host } = machine;
    await machine.sh(uplink);
    const before = await machine.sh(everywhere);
    await start(machine);
    const { underlay } = await host.observe(question);
    expect(underlay.addresses).toEqual(['203.0.113.5']);
    const rules = tunnelRules({ underlay: { ...underlay, resolvers: [] }, api: [api] }, true);
    await host.apply(settle(addRoute, ...rules.map((rule) => ({ add: 'rule', rule }) as const)));
    expect(machine.spawned).toEqual(['ip -force -batch -']);

    const way = async (to: string): Promise<string> => JSON.parse(await machine.sh(`ip -json route get ${to}`))[0].dev;
    expect({
      outside: await way(outside),
      own: await way(`${outside} mark ${tunnelMark}`),
      answers: await way(`${outside} from 203.0.113.5`),
      api: await way(api),
      neighbour: await way('203.0.113.9'),
      network: await way('10.77.0.9'),
    }).toEqual({ outside: 'cpn0', own: 'v0', answers: 'v0', api: 'v0', neighbour: 'v0', network: 'cpn0' });

    const actual = await host.observe(question);
    expect([...machine.spawned].sort()).toEqual(['ip -json -details -Numeric -batch -', 'wg show cpn0 dump']);
    expect(actual.rules).toEqual(rules.toSorted((a, b) => a.priority - b.priority));
    expect(actual.routes).toEqual([{ prefix, table: tunnelTable, protocol: routeProtocol, metric: 0 }]);
    expect(actual.device?.fwmark).toBe(tunnelMark);
    // Its default route is no uplink.
    expect(actual.underlay).toMatchObject({ gateways: ['203.0.113.1'], underlayMtu: 1500 });

    await host.apply(configure({ fwmark: null }));
    expect((await host.observe(question)).device?.fwmark).toBeNull();
    await host.apply(settle(...findOurRules(actual.rules).map((rule) => ({ remove: 'rule', rule }) as const)));
    await host.apply(destroy);
    await vi.waitFor(async () => expect(await machine.sh(everywhere)).toBe(before), { timeout: 5000, interval: 50 });
  });

  test('observes the rules of wg-quick, and unusual ones, so that each can be removed', async () => {
    await using machine = await Machine.start();
    const { host } = machine;
    await machine.sh(uplink);
    const before = await machine.sh('ip rule');
    await machine.sh(`ip rule add not fwmark ${tunnelMark} table ${tunnelTable}
      ip rule add table main suppress_prefixlength 0
      ip rule add from 10.0.0.0/8 fwmark 0x1/0xff iif v0 lookup ${tunnelTable} priority 7
      ip rule add to 192.0.2.1 unreachable priority 9 protocol ${routeProtocol}`);
    const { rules } = await host.observe(question);
    expect(rules).toMatchObject([
      { priority: 7, from: '10.0.0.0/8', fwmark: 1, mask: 255, table: tunnelTable, more: ['iif'] },
      { priority: 9, to: '192.0.2.1/32', table: null, protocol: routeProtocol, more: ['action'] },
      { ...mainRule, priority: 32764, protocol: '0' },
      { ...tunnelRule, priority: 32765, protocol: '0' },
    ]);
    await host.apply(settle(...rules.map((rule) => ({ remove: 'rule', rule }) as const)));
    expect(await machine.sh('ip rule')).toBe(before);
  });
});
