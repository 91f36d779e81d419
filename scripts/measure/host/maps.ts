import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { forwardingRules } from '../../../src/core/forward/forwarding-rules.ts';
import type { PrefixMap } from '../../../src/core/map/prefix-maps.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { renderFirewall } from '../../../src/host/linux/nft/own-table.ts';
import { network, peer, underlay } from '../../../test/core/samples.ts';
import { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { inTurn } from './in-turn.ts';

const rounds = 51;
const lans = 16;

/** The time in which nft loads the packet rules of a connector with mapped LANs, and without. */
export async function compareMaps(): Promise<Comparison[]> {
  await using lab = await Lab.start({ commandServers: true });
  const host = await lab.addHost('edge', { address: '203.0.113.21/24' });
  const maps = Array.from({ length: lans }, (_, at) => ({
    route: parsePrefix(`10.201.${at}.0/24`),
    local: parsePrefix(`192.168.${at}.0/24`),
  }));
  const load = async (name: string, used: readonly PrefixMap[]) => {
    const path = join(host.folder, name);
    await writeFile(path, rulesOf(maps, used));
    return { measured: () => host.exec(['nft', '-f', path]) };
  };
  const times = await inTurn(rounds, { mapped: await load('mapped', maps), plain: await load('plain', []) });
  return [
    {
      ...{ what: `nft loads the packet rules of ${lans} mapped LANs`, baseline: 'the same LANs unmapped', unit: 'ms' },
      ...{ ours: times.mapped, theirs: times.plain, target: null },
    },
  ];
}

function rulesOf(lansServed: readonly PrefixMap[], maps: readonly PrefixMap[]): string {
  const self = peer(1, { type: 'connector' });
  const map = network([self, peer(2)], { routes: lansServed.map(({ route }) => route) });
  const options = { masquerade: false, acceptRoutes: true, maps };
  const rules = forwardingRules({ link: 'cpn0', map, self, options, relayedPeers: [], underlay, ingress: [] });
  return renderFirewall({ link: 'cpn0', rules });
}
