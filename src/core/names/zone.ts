import { type Address, addressAt, addressOf, covers, lengthOf, overlaps, type Prefix, rangeOf } from '../net/cidr.ts';
import { peerDomain } from './hosts-block.ts';

/**
 * The port of the daemon's server of names. Only privileged users may open it: while the daemon is
 * down, no other user can answer in its place. IANA assigned it to a protocol that is not in use
 * (pirp). It is not 53, which the host's own server may have on all addresses.
 */
export const namesPort = 553;

/** A network whose peers have names. `label` names the network, as in the hosts file. */
export interface NamedNetwork {
  readonly label: string;
  /** IPv4. */
  readonly range: Prefix;
  readonly hosts: readonly NamedHost[];
}

interface NamedHost {
  readonly address: Address;
  /** Current one first. */
  readonly labels: readonly string[];
}

/** The data of a name in a zone, other than those of the apex. */
interface NameData {
  readonly type: 'A' | 'PTR';
  readonly data: string;
}

/** The names below one apex. All names are in lower case, without a trailing dot. */
export interface Zone {
  readonly apex: string;
  /** Null for an empty non-terminal, a name that only has names below it (RFC 8499, 7). */
  readonly names: ReadonlyMap<string, NameData | null>;
}

/** The zones of all networks by apex. */
export type Zones = ReadonlyMap<string, Zone>;

/** A question of the class IN. */
export interface Question {
  /** The name in the client's spelling, without a trailing dot. */
  readonly name: string;
  /** In capitals, such as `AAAA`. */
  readonly type: string;
}

interface SoaData {
  readonly mname: string;
  readonly rname: string;
  readonly serial: number;
  readonly refresh: number;
  readonly retry: number;
  readonly expire: number;
  readonly minimum: number;
}

interface RecordOf<Type, Data> {
  readonly type: Type;
  readonly name: string;
  /** In seconds. */
  readonly ttl: number;
  readonly data: Data;
}

/** A resource record. */
export type ResourceRecord = RecordOf<'A' | 'NS' | 'PTR', string> | RecordOf<'SOA', SoaData>;

/** A reply without its message. A reply other than `REFUSED` is authoritative. */
export interface Answer {
  readonly rcode: 'NOERROR' | 'NXDOMAIN' | 'REFUSED';
  readonly answers: readonly ResourceRecord[];
  readonly authorities: readonly ResourceRecord[];
}

/** Seconds. A peer may get another address or name at any time. */
const ttl = 5;

/** Zone transfers (RFC 5936 and RFC 1995). */
const transfers: readonly string[] = ['AXFR', 'IXFR'];

const refused: Answer = { rcode: 'REFUSED', answers: [], authorities: [] };

/**
 * Builds the zones of a network: `NETWORK.cpn.internal` with an A record per label, and the zones
 * of `in-addr.arpa` that together are its range, with a PTR record per peer. Takes time in
 * proportion to the peers, so call it once per map.
 */
export function buildZones({ label, range, hosts }: NamedNetwork): Zone[] {
  const apex = `${label}.${peerDomain}`.toLowerCase();
  const names = new Map<string, NameData>();
  const reverse = new Map(listReverseApexes(range).map((each) => [each, new Map<string, NameData | null>()]));
  for (const { address, labels } of hosts) {
    const owned = labels.map((each) => `${each}.${apex}`.toLowerCase());
    for (const name of owned) if (!names.has(name)) names.set(name, { type: 'A', data: address });
    const [first] = owned;
    if (first !== undefined && covers(range, address)) addPointer(reverse, address, first);
  }
  return [{ apex, names }, ...[...reverse].map(([each, pointers]) => ({ apex: each, names: pointers }))];
}

/** Indexes the zones of all networks. Of zones with the same apex, the first is used. */
export function indexZones(zones: readonly Zone[]): Zones {
  return new Map(zones.toReversed().map((zone) => [zone.apex, zone]));
}

/**
 * Answers a question from the zones. A name that exists without records of the type is `NOERROR`
 * with an SOA record in the authority section (RFC 2308, 2.2). A name outside the zones is refused.
 */
export function answer(zones: Zones, { name, type }: Question): Answer {
  const wanted = toLower(name);
  const zone = findZone(zones, wanted);
  if (zone === null || transfers.includes(type)) return refused;
  const records = listRecords(zone, wanted, name);
  // One record set is enough for ANY (RFC 8482, 4.1).
  const answers = type === 'ANY' ? records.slice(0, 1) : records.filter((record) => record.type === type);
  if (answers.length > 0) return { rcode: 'NOERROR', answers, authorities: [] };
  const exists = wanted === zone.apex || zone.names.has(wanted);
  return { rcode: exists ? 'NOERROR' : 'NXDOMAIN', answers, authorities: [soaOf(zone.apex, zone.apex)] };
}

/** Only letters of ASCII (RFC 4343): toLowerCase turns the Kelvin sign into a `k`. */
function toLower(name: string): string {
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The zone with the longest apex that the name ends in. */
function findZone(zones: Zones, name: string): Zone | null {
  for (let at = 0; ; ) {
    const zone = zones.get(name.slice(at));
    if (zone !== undefined) return zone;
    const dot = name.indexOf('.', at);
    if (dot < 0) return null;
    at = dot + 1;
  }
}

/** All records of a name, whose owner is `spelling`. */
function listRecords({ apex, names }: Zone, name: string, spelling: string): ResourceRecord[] {
  const held = names.get(name);
  return [
    ...(held ? [{ ...held, name: spelling, ttl }] : []),
    // The server has no name of its own, so the apex stands for it, as in RFC 6303, 3.
    ...(name === apex ? [soaOf(apex, spelling), { type: 'NS' as const, name: spelling, ttl, data: apex }] : []),
  ];
}

/** The serial never changes, because there are no transfers. `.` is no mailbox. */
function soaOf(apex: string, name: string): ResourceRecord {
  const data = { mname: apex, rname: '.', serial: 1, refresh: 3600, retry: 600, expire: 86_400, minimum: ttl };
  return { type: 'SOA', name, ttl, data };
}

/** Adds the record, and the names between it and its apex. */
function addPointer(zones: ReadonlyMap<string, Map<string, NameData | null>>, address: Address, target: string): void {
  const between: string[] = [];
  const octets = address.split('.').reverse();
  for (let depth = 0; depth <= octets.length; depth += 1) {
    const name = reverseName(octets.slice(depth));
    between.push(name);
    const names = zones.get(name);
    if (names === undefined) continue;
    for (const each of between.slice(1, -1)) names.set(each, null);
    const [own = name] = between;
    if (!names.has(own)) names.set(own, { type: 'PTR', data: target });
    return;
  }
}

/** At most 128 zones, each with whole octets: `10.0.0.0/15` is `0.10` and `1.10.in-addr.arpa`. */
function listReverseApexes(range: Prefix): string[] {
  return divideByOctets(range).map(nameReverseZone);
}

/** The maximum number of reverse zones of a route. */
const mostZones = 16;

/**
 * The reverse zones of an IPv4 prefix (RFC 1035, 3.5), which together cover exactly its addresses.
 * Leaves out zones with an address in `local`. Empty if that takes more than 16 zones, for a single
 * address, and for a prefix of less than a whole zone.
 */
export function findReverseZones(prefix: Prefix, local: readonly Prefix[]): string[] {
  const length = lengthOf(prefix);
  if (length === 0 || length > 24) return [];
  const zones = divideByOctets(prefix);
  if (zones.length > mostZones) return [];
  return zones.filter((zone) => !local.some((each) => overlaps(zone, each))).map(nameReverseZone);
}

/** The longest prefixes of whole octets that together are this one. */
function divideByOctets(prefix: Prefix): Prefix[] {
  const octets = Math.ceil(lengthOf(prefix) / 8);
  const { first } = rangeOf(prefix);
  const step = 1n << BigInt(32 - 8 * octets);
  return Array.from({ length: 2 ** (8 * octets - lengthOf(prefix)) }, (_, index) => {
    return `${addressAt(first + BigInt(index) * step)}/${8 * octets}` as Prefix;
  });
}

function nameReverseZone(zone: Prefix): string {
  const octets = addressOf(zone)
    .split('.')
    .slice(0, lengthOf(zone) / 8);
  return reverseName(octets.reverse());
}

/** The octets are those of the address from its last one on. */
function reverseName(octets: readonly string[]): string {
  return [...octets, 'in-addr.arpa'].join('.');
}
