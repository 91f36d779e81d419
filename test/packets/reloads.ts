import type { PortRange, Rule } from '../../src/core/map/access-rules.ts';
import { renderElements, renderFirewall } from '../../src/host/linux/nft/own-table.ts';
import { dialled, network, peer } from '../core/samples.ts';
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

/** How rules are loaded: all of the table, or only elements and classes. */
export type Manner = 'table' | 'elements';

/** Sends packets through a connector while its rules change again and again between two lists. */
export async function countThroughReloads(
  wire: Wire,
  manner: Manner,
  times: number,
  packets: number,
): Promise<Outcome[]> {
  const one = filterWith([allow('udp', 1000), allow('udp', 2000), ...always]);
  const other = filterWith([allow('udp', 999, 1001), allow('udp', 3000), ...always]);
  const reload =
    manner === 'table'
      ? [renderFirewall(other), renderFirewall(one)]
      : [...renderElements(other, one), ...renderElements(one, other)];
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
  return { name: `${first}`, from: [{ kind: 'peer', id: 2 }], to: [{ kind: 'route', prefix: lan }], protocol, ports };
}

const always = [allow('tcp', 22)];

function filterWith(rules: readonly Rule[]) {
  const self = peer(1, { type: 'connector', endpoint: dialled(1), routes: [lan] });
  const map = { ...network([self, peer(2)], { routes: [lan] }), rules: { rules, requiresEnforcement: false } };
  return filterOf({ map, self, masquerade: false, maps: [], forwards: true, services: [] });
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
