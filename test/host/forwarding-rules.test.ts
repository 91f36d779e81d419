import fc from 'fast-check';
import { expect, test } from 'vitest';
import { forwardingRules } from '../../src/core/forward/forwarding-rules.ts';
import { findIngresses, noForwarding } from '../../src/core/forward/ingress.ts';
import { firewallMarks } from '../../src/core/forward/own-table.ts';
import { isDefaultRoute, lengthOf } from '../../src/core/net/cidr.ts';
import { networksWithExit, peer, prefix, underlay } from '../core/samples.ts';
import { Machine } from './machine.ts';

test('nft loads the packet rules of any connector as intended', { timeout: 60_000 }, async () => {
  await using machine = await Machine.start();
  const question = { link: 'cpn0', firewall: true, sysctls: [], hosts: false };
  await fc.assert(
    fc.asyncProperty(networksWithExit, fc.nat(), fc.boolean(), fc.nat(2), async (map, at, masquerade, count) => {
      const self = { ...(map.peers[at % map.peers.length] ?? peer(1)), type: 'connector' as const };
      const relayedPeers = map.peers.slice(0, 3);
      const { ingress } = findIngresses(map.routes, underlay, noForwarding);
      const mapped = map.routes.filter((route) => !isDefaultRoute(route)).slice(0, count);
      const maps = mapped.map((route, place) => ({ route, local: prefix(`${20 + place}.0.0.0/${lengthOf(route)}`) }));
      const options = { masquerade, acceptRoutes: true, maps };
      const rules = forwardingRules({ link: 'cpn0', map, self, options, relayedPeers, underlay, ingress });
      const firewall = { link: 'cpn0', rules };
      await machine.host.apply({ do: 'set-firewall', firewall, changes: [] });
      expect((await machine.host.observe(question)).firewall).toEqual(firewallMarks(firewall));
    }),
    { numRuns: 30 },
  );
});
