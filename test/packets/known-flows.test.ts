import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Rule, Selector } from '../../src/core/map/access-rules.ts';
import type { Address, Family } from '../../src/core/net/cidr.ts';
import { dialled, network, peer } from '../core/samples.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { type Place, places, renderGateway, startGateway } from './gateway.ts';
import { buildPacket, type Packet, readPacket, tcpFlags } from './packet.ts';
import type { Wire } from './wire.ts';

/** Connections through a connector whose rules change. */
let lab: Lab;
let host: Host;
let wire: Wire;

beforeAll(async () => {
  lab = await Lab.start();
  ({ host, wire } = await startGateway(lab));
});

afterAll(async () => {
  await wire?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

beforeEach(() => wire.exchange({ flush: true }));

const member: Selector = { kind: 'peer', id: 2 };
const lanOf = (place: Place): Selector => ({ kind: 'route', prefix: place.routes[0] ?? place.range });
const inward = (place: Place, rule: Partial<Rule>): Rule => ({
  ...anything,
  from: [member],
  to: [lanOf(place)],
  ...rule,
});
const outward = (place: Place, rule: Partial<Rule>): Rule => ({
  ...anything,
  from: [lanOf(place)],
  to: [member],
  ...rule,
});
const anything = { name: 'rule', protocol: 'any', ports: [] } as const;
const port = (number: number) => [{ first: number, last: number }];

/** Loads the packet filter of a connector of a LAN, in a closed network with these rules. */
async function load(place: Place, rules: readonly Rule[], masquerade = false): Promise<void> {
  const self = peer(1, {
    type: 'connector',
    address: place.own,
    endpoint: dialled(1),
    routes: [...place.routes.slice(0, 1)],
  });
  const map = {
    ...network([self, peer(2, { address: place.peerAt(2) })], { cidr: place.range, routes: place.routes.slice(0, 1) }),
    rules: { rules, requiresEnforcement: false },
  };
  await wire.exchange({ nft: renderGateway({ map, self, masquerade, maps: [], forwards: true, services: [] }) });
}

type Side = 'cpn0' | 'lan0';
type Parts = Omit<Packet, 'from' | 'to' | 'payload'>;

/** Two hosts with the connector between them: `begins` is the side where the connection begins. */
class Conversation {
  readonly #place: Place;
  readonly #begins: Side;
  /** What the other side has as the source, behind a masquerade. */
  #source: { address: Address; port: number } | null = null;

  constructor(place: Place, begins: Side) {
    this.#place = place;
    this.#begins = begins;
  }

  /** Sends a packet from the side where the connection begins; true if it arrives. */
  forth(parts: Parts): Promise<boolean> {
    return this.#send(this.#begins, parts);
  }

  /** Sends a packet back; true if it arrives. */
  back(parts: Parts): Promise<boolean> {
    return this.#send(this.#begins === 'cpn0' ? 'lan0' : 'cpn0', parts);
  }

  async #send(from: Side, parts: Parts): Promise<boolean> {
    const to = from === 'cpn0' ? 'lan0' : 'cpn0';
    const isBack = from !== this.#begins;
    const source = isBack ? this.#source : null;
    const packet: Packet = {
      ...parts,
      from: this.addressAt(from),
      to: source?.address ?? this.addressAt(to),
      ...(source !== null && parts.protocol !== 'icmp' && { port: source.port }),
      ...(source !== null && parts.protocol === 'icmp' && !parts.icmp?.[0] && { sourcePort: source.port }),
      payload: Buffer.from('<conversation>'),
    };
    const got = await wire.exchange({ send: [{ device: from, bytes: buildPacket(packet) }] });
    const found = got.filter(({ device }) => device === to).map(({ bytes }) => readPacket(bytes));
    const arrived = found.find(({ transport }) => transport.includes('<conversation>'));
    if (arrived && !isBack) {
      const at = parts.protocol === 'icmp' ? 4 : 0;
      this.#source = { address: arrived.from, port: arrived.transport.readUInt16BE(at) };
    }
    return arrived !== undefined;
  }

  /** The host of a side. */
  addressAt(side: Side): Address {
    return side === 'cpn0' ? this.#place.peerAt(2) : (this.#place.lan[0] ?? this.#place.lanOwn);
  }
}

const { syn, ack, push } = tcpFlags;
const clientPort = 40_001;

/** A packet of an exchange, and its answer. */
interface Kind {
  readonly rule: Pick<Rule, 'protocol' | 'ports'>;
  readonly first: (family: Family) => Parts;
  readonly answer: (family: Family) => Parts;
  readonly later: (family: Family) => Parts;
}

const tcp = (flags: number, isBack: boolean, server = 22): Parts => ({
  protocol: 'tcp',
  ...(isBack ? { sourcePort: server, port: clientPort } : { sourcePort: clientPort, port: server }),
  flags,
  sequence: isBack ? 7001 : flags === syn ? 1000 : 1001,
  acknowledged: flags === syn ? 0 : isBack ? 1001 : 7002,
});
const udp = (isBack: boolean): Parts => ({
  protocol: 'udp',
  ...(isBack ? { sourcePort: 53, port: clientPort } : { sourcePort: clientPort, port: 53 }),
});
const echo = (family: Family, isBack: boolean): Parts => ({
  protocol: 'icmp',
  sourcePort: 77,
  port: 1,
  icmp: isBack ? [family === 4 ? 0 : 129, 0] : [family === 4 ? 8 : 128, 0],
});

const kinds: Readonly<Record<string, Kind>> = {
  'a TCP connection': {
    rule: { protocol: 'tcp', ports: port(22) },
    first: () => tcp(syn, false),
    answer: () => tcp(syn | ack, true),
    later: () => tcp(ack | push, false),
  },
  'a UDP flow': {
    rule: { protocol: 'udp', ports: port(53) },
    first: () => udp(false),
    answer: () => udp(true),
    later: () => udp(false),
  },
  'a ping': {
    rule: { protocol: 'icmp', ports: [] },
    first: (family) => echo(family, false),
    answer: (family) => echo(family, true),
    later: (family) => echo(family, false),
  },
};

const sides = [
  { begins: 'cpn0' as const, rule: inward, masquerade: true, where: 'into the LAN, masqueraded' },
  { begins: 'cpn0' as const, rule: inward, masquerade: false, where: 'into the LAN' },
  { begins: 'lan0' as const, rule: outward, masquerade: true, where: 'out of the LAN' },
];

describe.each([4, 6] as const)('IPv%i', (family) => {
  const place = places[family];

  describe.each(Object.entries(kinds))('%s', (_, kind) => {
    it.each(sides)('$where goes on while another rule changes, and ends with its own', async (side) => {
      const other = inward(place, { protocol: 'tcp', ports: port(5432) });
      const another = outward(place, { protocol: 'udp', ports: port(123) });
      const own = side.rule(place, kind.rule);
      await load(place, [own, other], side.masquerade);
      const talk = new Conversation(place, side.begins);
      const begins = [await talk.forth(kind.first(family)), await talk.back(kind.answer(family))];
      expect([...begins, await talk.forth(kind.later(family))]).toEqual([true, true, true]);

      await load(place, [another, own], side.masquerade);
      expect([await talk.forth(kind.later(family)), await talk.back(kind.answer(family))]).toEqual([true, true]);

      await load(place, [another, other], side.masquerade);
      expect([await talk.back(kind.answer(family)), await talk.forth(kind.later(family))]).toEqual([false, false]);

      await load(place, [own], side.masquerade);
      expect([await talk.forth(kind.later(family)), await talk.back(kind.answer(family))]).toEqual([true, true]);
    });
  });

  describe.each([1, 0])(
    'with nf_conntrack_tcp_loose=%i, a TCP connection that conntrack did not see begin',
    (loose) => {
      beforeEach(async () => {
        await host.exec(['sh', '-c', `echo ${loose} >/proc/sys/net/netfilter/nf_conntrack_tcp_loose`]);
      });

      it.each([
        { begins: 'cpn0' as const, rule: inward, first: 'forth' as const },
        { begins: 'cpn0' as const, rule: inward, first: 'back' as const },
        { begins: 'lan0' as const, rule: outward, first: 'forth' as const },
        { begins: 'lan0' as const, rule: outward, first: 'back' as const },
      ])(
        'by a rule from $begins goes on if $first sends first, and ends without a rule',
        async ({ begins, rule, first }) => {
          const talk = new Conversation(place, begins);
          const both = async () => {
            const steps = {
              forth: () => talk.forth(tcp(ack | push, false)),
              back: () => talk.back(tcp(ack | push, true)),
            };
            const second = first === 'forth' ? 'back' : 'forth';
            return [await steps[first](), await steps[second](), await steps[first]()];
          };
          await load(place, [rule(place, { protocol: 'tcp', ports: port(22) })]);
          expect(await both()).toEqual([true, true, true]);
          await load(place, [rule(place, { protocol: 'tcp', ports: port(23) })]);
          expect(await both()).toEqual([false, false, false]);
          await wire.exchange({ flush: true });
          expect(await both()).toEqual([false, false, false]);
        },
      );

      it.each([false, true])('is not kept by a rule for the other direction (new table: %s)', async (isNew) => {
        // A member connects from source port 22 to a database. Then only the LAN may connect, to port 22 of the member.
        const talk = new Conversation(place, 'cpn0');
        const attack = (flags: number, isBack: boolean): Parts => ({
          ...tcp(flags, isBack),
          ...(isBack ? { sourcePort: 3306, port: 22 } : { sourcePort: 22, port: 3306 }),
        });
        await load(place, [inward(place, { protocol: 'tcp', ports: port(3306) })]);
        const begins = [await talk.forth(attack(syn, false)), await talk.back(attack(syn | ack, true))];
        expect([...begins, await talk.forth(attack(ack, false))]).toEqual([true, true, true]);
        await load(place, [outward(place, { protocol: 'tcp', ports: port(22) })]);
        if (isNew) await wire.exchange({ flush: true });
        expect(await talk.forth(attack(syn, false))).toBe(false);
        expect(await talk.forth(attack(ack | push, false))).toBe(false);
        expect(await talk.back(attack(ack | push, true))).toBe(false);
      });
    },
  );

  describe('an ICMP error', () => {
    const errors = family === 4 ? { tooBig: [3, 4], unreachable: [3, 3] } : { tooBig: [2, 0], unreachable: [1, 4] };

    /** Sends an error about a packet that left by the same device; true if it arrives. */
    async function report(talk: Conversation, from: Side, error: readonly number[], about: Parts): Promise<boolean> {
      const to = from === 'cpn0' ? 'lan0' : 'cpn0';
      const ends = { from: talk.addressAt(to), to: talk.addressAt(from) };
      const inner = buildPacket({ ...about, ...ends, payload: Buffer.from('<reported>') });
      const [type = 0, code = 0] = error;
      const bytes = buildPacket({
        ...{ protocol: 'icmp', from: ends.to, to: ends.from, icmp: [type, code] },
        ...{ sourcePort: 0, port: 1280, payload: inner },
      });
      const got = await wire.exchange({ send: [{ device: from, bytes }] });
      return got.some((each) => each.device === to && each.bytes.includes('<reported>'));
    }

    it.each(Object.entries(errors))(
      'passes from both sides about an allowed flow, and about no other: %s',
      async (_, error) => {
        await load(place, [inward(place, { protocol: 'udp', ports: port(53) })]);
        const talk = new Conversation(place, 'cpn0');
        expect([await talk.forth(udp(false)), await talk.back(udp(true))]).toEqual([true, true]);
        expect(await report(talk, 'lan0', error, udp(false))).toBe(true);
        expect(await report(talk, 'cpn0', error, udp(true))).toBe(true);
        const forged = { ...udp(false), sourcePort: clientPort + 1 };
        expect(await report(talk, 'lan0', error, forged)).toBe(false);
        expect(await report(talk, 'cpn0', error, forged)).toBe(false);
        expect(await report(talk, 'cpn0', error, tcp(ack, true))).toBe(false);
      },
    );
  });
});
