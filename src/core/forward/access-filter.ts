import { digestOf } from '../crypto/keys.ts';
import { type Address, familyOf, type Prefix } from '../net/cidr.ts';
import type { NumberRange } from '../net/number-ranges.ts';
import { probedPort } from '../rules/evaluate.ts';
import type { DeviceEnd, LocalEnd } from '../rules/resolve.ts';
import { type AccessChain, type AccessSet, writeNumbers } from './access/classes.ts';
import { type AccessFilter, acceptErrors, joinLookups, writeDevices, writeLookups } from './access/lookups.ts';
import { firstClientPort } from './access/sides.ts';
import { protocolOf } from './nft-words.ts';
import type { PacketRule } from './packet-rule.ts';

export interface AccessInputs {
  readonly link: string;
  readonly range: Prefix;
  readonly own: Address;
  /** The first has the host's own address. Others have parts of the routes that it serves. */
  readonly ends: readonly LocalEnd[];
  /** Peers that are reached through this host alone. */
  readonly devices: readonly DeviceEnd[];
  /** Returns the addresses behind this host that a part of a route stands for. */
  readonly toLocal: (part: NumberRange) => readonly NumberRange[];
  /** True if connections may begin there: not in a part that only a default route has. */
  readonly isLan: (part: NumberRange) => boolean;
  /** The control plane's addresses and ports, which stay reachable. */
  readonly services: readonly ServiceSocket[];
}

export interface ServiceSocket {
  readonly address: Address;
  readonly port: number;
}

/** Maps from addresses to the chains of their ends. */
interface Maps {
  readonly inward: AccessSet;
  readonly either: AccessSet;
  /** Null without a LAN. */
  readonly outward: AccessSet | null;
  readonly device: AccessSet | null;
}

/** The addresses of each end. */
type Places = readonly (readonly NumberRange[])[];

/**
 * Our bit of the mark of a connection that began while these rules were in place. Other TCP
 * connections began before, or through another connector.
 */
const begunMark = '0x8000000';

/** Matches TCP packets that do not begin a connection. Old systems take SYN with FIN for a SYN. */
const goesOn = 'meta l4proto tcp tcp flags & (syn|ack) != syn';

/** Datagrams that a host sends to start a handshake. Their destination drops them. */
const startsHandshake = `meta l4proto udp udp dport ${probedPort}`;

/** The set of the latest refused connections: sender, destination, protocol, port. */
export const deniedSet = 'denied';
/** Seconds for which an element stays after its latest packet. */
export const deniedFor = 300;
/** The counters of refused packets: from the tunnel or a LAN, and toward the tunnel. */
export const deniedCounters = { in: 'denied_in', out: 'denied_out' } as const;

/**
 * The packet filter of a closed network. A packet is judged by the connection that it belongs to,
 * by today's rules, and by the addresses that the connection has in the tunnel. So a connection
 * ends when its rule goes. An ICMP error passes if it belongs to a connection.
 *
 * If conntrack did not see a TCP connection begin, its direction is unknown. Then a packet passes
 * if it could belong to an allowed connection of either direction: to this side, or from a port of
 * this side that clients use. No connection can begin that way.
 */
export function accessFilter(inputs: AccessInputs): { rules: readonly PacketRule[]; filter: AccessFilter } {
  const { link, range, ends, toLocal, isLan, devices } = inputs;
  const local = writeLookups({ link, range }, ends);
  const beyond = writeDevices(range, devices, refuse(range, 'in'));
  const found = joinLookups([local, beyond]);
  const family = familyOf(range);
  const type = `type ipv${family}_addr : verdict; flags interval;`;
  /** A map from the addresses of ends to their chains, by a name that no other map has. */
  const dispatch = (name: string, verdict: string, places: Places, { names } = local): AccessSet => {
    const elements = places.flatMap((ranges, index) =>
      ranges.map((each) => `${writeNumbers(each, family)} : ${verdict}${names[index]}`),
    );
    return { name: `${name}_${digestOf(elements.join(), 8)}`, type, elements };
  };
  const placesOf = (each: readonly Pick<LocalEnd, 'ranges'>[]) => each.map(({ ranges }) => ranges);
  const here = ends.map(({ ranges }, index) => (index === 0 ? ranges : ranges.flatMap(toLocal)));
  const lans = ends.map(({ ranges }, index) => (index === 0 ? [] : ranges.filter(isLan).flatMap(toLocal)));
  const maps: Maps = {
    inward: dispatch('in_ends', 'jump in', placesOf(ends)),
    either: dispatch('either_ends', 'jump either', here),
    outward: lans.every((ranges) => ranges.length === 0) ? null : dispatch('out_ends', 'goto out', lans),
    device: devices.length === 0 ? null : dispatch('device_ends', 'goto device', placesOf(devices), beyond),
  };
  const sets = [...Object.values(maps).filter((each) => each !== null), ...found.sets];
  const byLan = maps.outward ? [`ct original ${protocolOf(range)} saddr vmap @${maps.outward.name}`] : [];
  // Conntrack may have seen the packet of a server first.
  const isServer = `meta l4proto tcp ct mark & ${begunMark} == 0x0 ct original proto-src < ${firstClientPort}`;
  const outward: AccessChain = {
    name: 'outward',
    texts: [`${isServer} return`, ...byLan, `goto out${local.names[0]}`],
  };
  const byLans = lans.flat().map((each) => writeNumbers(each, family));
  return {
    rules: [...hookedRules(inputs, maps), ...(maps.outward ? lanRules(inputs, byLans, `in${local.names[0]}`) : [])],
    filter: {
      chains: [...found.chains, outward],
      ...{ classes: found.classes, sets, identity: digestElements(sets), family },
    },
  };
}

/** The rules for packets to this host, through it, and from it. */
function hookedRules({ link, range, own, services }: AccessInputs, maps: Maps): PacketRule[] {
  const ip = protocolOf(range);
  const [outOf, into] = [`iifname "${link}"`, `oifname "${link}"`];
  const judge = (side: string, inward: 'original' | 'reply', outward: 'original' | 'reply', local: string) => [
    `${side} ct direction original tcp flags & (fin|syn|rst|ack) == syn ct mark set ct mark | ${begunMark}`,
    ...services.map((service) => `${side} ${acceptService(service)}`),
    `${side} ct direction ${inward} ct original ${ip} daddr vmap @${maps.inward.name}`,
    `${side} ct direction ${outward} jump outward`,
    `${side} ${acceptErrors(range)}`,
    `${side} ${goesOn} ct state { invalid, untracked } ${ip} ${local} vmap @${maps.either.name}`,
    `${side} ${goesOn} ct mark & ${begunMark} == 0x0 ${ip} ${local} vmap @${maps.either.name}`,
    ...(side === outOf ? [`${side} ct direction original ${startsHandshake} drop`] : []),
    ...refuse(range, side === outOf ? 'in' : 'out').map((text) => `${side} ${text}`),
  ];
  const arriving = judge(outOf, 'original', 'reply', 'daddr');
  const leaving = judge(into, 'reply', 'original', 'saddr');
  const write = (chain: PacketRule['chain'], texts: readonly string[]) =>
    texts.map((text): PacketRule => ({ name: 'judge', chain, text }));
  // A relay does not judge: the hosts at both ends do, unless no other host reaches one of them.
  const relayed = [
    ...(maps.device ? [...services.map(acceptService), `ct original ${ip} daddr vmap @${maps.device.name}`] : []),
    'accept',
  ].map((text) => `${outOf} ${into} ${text}`);
  const reset = `${outOf} ${ip} saddr ${range} ${ip} daddr ${own} tcp dport ${probedPort} reject with tcp reset`;
  return [
    { name: 'answer-probes', chain: 'probed', text: reset },
    ...write('admitting', arriving),
    // Another program may turn on forwarding at any time.
    ...write('judging', [...relayed, ...arriving, ...leaving]),
    // This host also reports errors about packets of no connection.
    ...write('sending', [
      `${into} ${ip} daddr ${range} ${startsHandshake} accept`,
      ...leaving.slice(0, -1),
      `${into} meta l4proto { tcp, udp } ${drop('out')}`,
    ]),
  ];
}

function acceptService({ address, port }: ServiceSocket): string {
  return `meta l4proto tcp ct original ${protocolOf(address)} daddr ${address} ct original proto-dst ${port} accept`;
}

/** Judges packets of the LANs of a connector to its tunnel address, which no tunnel carries. */
function lanRules(
  { link, range, own, services }: AccessInputs,
  lans: readonly string[],
  ownChain: string,
): PacketRule[] {
  const ip = protocolOf(range);
  const fromLan = `iifname != { "${link}", "lo" } ${ip} saddr { ${lans.join(', ')} } ${ip} daddr ${own}`;
  const texts = [
    ...services.map(acceptService),
    `ct direction original jump ${ownChain}`,
    ...refuse(range, 'in').slice(0, -1),
  ];
  return texts.map((text) => ({ name: 'judge-lan', chain: 'admitting', text: `${fromLan} ${text}` }));
}

/** Records and refuses a connection that no rule allows, and drops its other packets. */
function refuse(range: Prefix, direction: keyof typeof deniedCounters): string[] {
  const ip = protocolOf(range);
  // What arrives may have another destination already.
  const ends = {
    in: `ct original ${ip} saddr . ct original ${ip} daddr . meta l4proto . ct original proto-dst`,
    out: `${ip} saddr . ${ip} daddr . meta l4proto . th dport`,
  }[direction];
  return [
    `ct direction original meta l4proto { tcp, udp } update @${deniedSet} { ${ends} }`,
    `ct direction original ${count(direction)} reject with icmpx admin-prohibited`,
    drop(direction),
  ];
}

function drop(direction: keyof typeof deniedCounters): string {
  return `${count(direction)} drop`;
}

function count(direction: keyof typeof deniedCounters): string {
  return `counter name "${deniedCounters[direction]}"`;
}

function digestElements(sets: readonly AccessSet[]): string {
  return digestOf(JSON.stringify(sets.map((set) => [set.name, set.type, set.elements.toSorted()])), 8);
}
