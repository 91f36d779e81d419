import { canChange } from '../../../src/core/forward/own-table.ts';
import type { Firewall } from '../../../src/core/forward/packet-rule.ts';
import type { PortRange } from '../../../src/core/map/access-rules.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { renderFirewall } from '../../../src/host/linux/nft/own-table.ts';
import { renderChange } from '../../../src/host/linux/nft/table-change.ts';
import { address, desireFor, dialled, network, peer, prefix } from '../../../test/core/samples.ts';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { inTurn } from '../host/in-turn.ts';

const rounds = 21;
const patient = { timeoutMs: 600_000 };

/** Peers with a tag, and the ports that it is allowed at the measured host. */
interface Crowd {
  readonly what: string;
  readonly peers: number;
  readonly ports: readonly PortRange[];
  /** How many peers get or lose the tag in a change of 100 pairs. */
  readonly changed: number;
}

const crowds: readonly Crowd[] = [
  {
    what: '65,536 pairs of a peer and a port',
    peers: 4096,
    ports: Array.from({ length: 16 }, (_, at) => ({ first: 1000 + 2 * at, last: 1000 + 2 * at })),
    changed: 6,
  },
  {
    what: '3,000 peers with 20 ranges of ports',
    peers: 3000,
    ports: Array.from({ length: 20 }, (_, at) => ({ first: 1000 + 20 * at, last: 1009 + 20 * at })),
    changed: 5,
  },
];

/**
 * The time in which a host of a closed network loads its packet filter, and changes its elements.
 * The baseline is a network without peers, so that it has what a process costs on a busy machine.
 */
export async function compareElements(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const host = await lab.addHost('edge', { address: '203.0.113.21/24' });
  const found: Comparison[] = [];
  for (const crowd of crowds) found.push(...(await compareCrowd(host, crowd)));
  return found;
}

async function compareCrowd(host: Host, crowd: Crowd): Promise<Comparison[]> {
  const { what, peers, changed } = crowd;
  const [none, all, few, half] = [0, peers, peers - changed, peers / 2].map((tagged) => filterFor(crowd, tagged));
  if (none === undefined || all === undefined || few === undefined || half === undefined) return [];
  const load = async (texts: readonly string[]) => {
    for (const input of texts) await host.exec(['nft', '-f', '-'], { input, ...patient });
  };
  const apply = (from: Firewall, to: Firewall) => load(change(from, to));
  const { empty, loaded } = await inTurn(rounds, {
    empty: { measured: () => load([renderFirewall(none)]) },
    loaded: { measured: () => load([renderFirewall(all)]) },
  });
  const { lost, gained, untagged, resolved } = await inTurn(rounds, {
    lost: { measured: () => apply(all, few) },
    gained: { measured: () => apply(few, all) },
    untagged: { measured: () => apply(all, half), after: () => apply(half, all) },
    resolved: { measured: async () => filterFor(crowd, peers) },
  });
  const row = (text: string, ours: readonly number[], most: number | null): Comparison => ({
    ...{ what: text, baseline: 'nft loads the filter without peers', unit: 'ms', ours, theirs: empty },
    target: most === null ? null : { atMost: most, share: 0.5, text: `median ≤ ${most} ms` },
  });
  return [
    row(`nft loads ${what}`, loaded, 300),
    row(`${changed} of these peers lose the tag`, lost, 30),
    row(`${changed} of these peers get the tag`, gained, 30),
    row(`half of these peers lose the tag`, untagged, null),
    { ...row(`a host resolves the rules of ${what}`, resolved, null), baseline: '', theirs: [] },
  ];
}

function change(from: Firewall, to: Firewall): readonly string[] {
  if (!canChange(from, to)) throw new Error('the filter cannot be changed in place');
  return renderChange(to, from);
}

/** The packet filter of a host in a closed network in which so many peers have the tag. */
function filterFor({ peers, ports }: Crowd, tagged: number): Firewall {
  const self = peer(1, { endpoint: dialled(1) });
  // All have one key, which takes 1 ms to derive.
  const one = peer(2);
  const others = Array.from({ length: peers }, (_, at) => ({
    ...{ ...one, id: 10 + at, name: `peer-${10 + at}`, tags: at < tagged ? ['ops'] : [] },
    address: address(`10.77.${(10 + at) >> 8}.${(10 + at) & 255}`),
  }));
  const rule = { name: 'ops', from: [{ kind: 'tag', tag: 'ops' }], to: [{ kind: 'any' }], protocol: 'tcp' } as const;
  const rules = { rules: [{ ...rule, ports }], requiresEnforcement: false };
  const map: NetworkMap = { ...network([self, ...others], { cidr: prefix('10.77.0.0/16') }), rules };
  const { firewall } = desireFor(self, map, { forwarding: { sysctls: {}, receipt: [], others: [], hasNft: true } });
  if (firewall === null) throw new Error('the host has no packet filter');
  return firewall;
}
