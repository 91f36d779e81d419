import { canChange } from '../../src/core/forward/own-table.ts';
import type { Firewall } from '../../src/core/forward/packet-rule.ts';
import type { PortRange, Rule, Selector } from '../../src/core/map/access-rules.ts';
import { renderFirewall } from '../../src/host/linux/nft/own-table.ts';
import { renderChange } from '../../src/host/linux/nft/table-change.ts';
import { dialled, network, peer, prefix } from '../core/samples.ts';
import { filterOf, places } from './gateway.ts';
import { buildPacket, type Packet, tcpFlags } from './packet.ts';
import type { Repeated, RepeatedPacket, Wire } from './wire.ts';

const place = places[4];
const [lan = place.range] = place.routes;
const [server = place.lanOwn] = place.lan;
const member = place.peerAt(2);

/** Whether the rules before and after a reload allow a packet. */
export type Allowed = 'by both' | 'by one' | 'by none';

export interface Outcome extends Repeated {
  readonly what: string;
  readonly allowed: Allowed;
}

const route: Selector = { kind: 'route', prefix: lan };
/** Parts of the route, the first with the server. */
const parts = ['192.168.50.0/25', '192.168.50.128/26'].map(
  (each): Selector => ({ kind: 'cidr', prefix: prefix(each) }),
);

const usual = [allow('udp', 1000), allow('udp', 2000), allow('tcp', 22)];
const replaced = [allow('udp', 999, 1001), allow('udp', 3000), allow('tcp', 22)];

/** Lists of rules that replace each other. Each pair allows the same of the flows that are sent. */
const lists = {
  'the ports of a peer': [usual, replaced],
  'parts of a route': [usual, parts.flatMap((to) => replaced.map((rule) => ({ ...rule, to: [to] })))],
  'what all peers are allowed': [usual, fromAll(replaced)],
  'what a peer is allowed beyond all': [fromAll(usual), [...fromAll([allow('tcp', 22)]), ...replaced]],
} as const satisfies Record<string, readonly [readonly Rule[], readonly Rule[]]>;

/** What changes in the rules. */
export type Changed = keyof typeof lists;
export const allChanged = Object.keys(lists) as Changed[];

/** In place, as a pass changes rules, or by a load of the whole table. */
export type Manner = 'in place' | 'whole table';

/** Sends packets through a connector while its rules change again and again between two lists. */
export async function countThroughReloads(
  wire: Wire,
  changed: Changed,
  manner: Manner,
  times: number,
  packets: number,
): Promise<Outcome[]> {
  const [one, other] = lists[changed].map(filterWith) as [Firewall, Firewall];
  const reload =
    manner === 'in place'
      ? [...change(one, other), ...change(other, one)]
      : [other, one].map((each) => renderFirewall(each));
  await wire.exchange({ nft: renderFirewall(one), flush: true });
  const known = repeated({
    ...session,
    from: member,
    to: server,
    flags: tcpFlags.ack,
    sequence: 2,
    acknowledged: 7002,
  });
  await beginSession(wire);
  const sent: readonly (RepeatedPacket & Pick<Outcome, 'what' | 'allowed'>)[] = [
    { ...known, what: 'a known TCP connection', allowed: 'by both' },
    { ...datagram(1000), what: 'a new flow', allowed: 'by both' },
    { ...datagram(2000), what: 'a flow that only the first rules allow', allowed: 'by one' },
    { ...datagram(3000), what: 'a flow that only the second rules allow', allowed: 'by one' },
    { ...datagram(4000), what: 'a flow that no rules allow', allowed: 'by none' },
    {
      ...repeated({ ...session, from: member, to: server, port: 23 }),
      what: 'a connection that no rules allow',
      allowed: 'by none',
    },
  ];
  const counts = await wire.reload({ reload, times, packets, send: sent }, 1_800_000);
  return counts.map((count, index) => ({ what: '', allowed: 'by none', ...sent[index], ...count }));
}

/** How many packets were lost that both allow, and how many arrived that none allows. */
export function countFaults(outcomes: readonly Outcome[]): { readonly lost: number; readonly passed: number } {
  const of = (wanted: Allowed) => outcomes.filter(({ allowed }) => allowed === wanted);
  return {
    lost: of('by both').reduce((sum, { sent, arrived }) => sum + sent - arrived, 0),
    passed: of('by none').reduce((sum, { arrived }) => sum + arrived, 0),
  };
}

function allow(protocol: 'tcp' | 'udp', first: number, last = first): Rule {
  const ports: readonly PortRange[] = [{ first, last }];
  return { name: `${first}`, from: [{ kind: 'peer', id: 2 }], to: [route], protocol, ports };
}

function fromAll(rules: readonly Rule[]): Rule[] {
  return rules.map((rule) => ({ ...rule, from: [{ kind: 'any' }] }));
}

function filterWith(rules: readonly Rule[]): Firewall {
  const self = peer(1, { type: 'connector', endpoint: dialled(1), routes: [lan] });
  const map = { ...network([self, peer(2)], { routes: [lan] }), rules: { rules, requiresEnforcement: false } };
  return filterOf({ map, self, masquerade: false, maps: [], forwards: true, services: [] });
}

function change(loaded: Firewall, wanted: Firewall): readonly string[] {
  if (!canChange(loaded, wanted)) throw new Error('the filter cannot be changed in place');
  return renderChange(wanted, loaded);
}

const session = { protocol: 'tcp', sourcePort: 40_001, port: 22 } as const;

async function beginSession(wire: Wire): Promise<void> {
  const steps = [
    repeated({ ...session, from: member, to: server }),
    repeated({
      ...{ protocol: 'tcp', from: server, to: member, sourcePort: 22, port: 40_001 },
      ...{ flags: tcpFlags.syn | tcpFlags.ack, sequence: 7001, acknowledged: 2 },
    }),
  ];
  for (const step of steps) await wire.exchange({ send: [step] });
}

function datagram(port: number): RepeatedPacket {
  return { ...repeated({ protocol: 'udp', from: member, to: server, sourcePort: 1, port }), varies: true };
}

function repeated(packet: Omit<Packet, 'payload'>): RepeatedPacket {
  const mark = `<port ${packet.port}>`;
  const [device, to] = packet.from === member ? ['cpn0', 'lan0'] : ['lan0', 'cpn0'];
  return { device, to, mark, varies: false, bytes: buildPacket({ ...packet, payload: Buffer.from(mark) }) };
}
