import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Address, Family } from '../../src/core/net/cidr.ts';
import { dialled, network, peer } from '../core/samples.ts';
import { Lab } from '../lab/lab.ts';
import { places, renderGateway, startGateway } from './gateway.ts';
import { buildPacket, readPacket } from './packet.ts';
import { addHeader, addOptions, fragment } from './split.ts';
import type { Wire } from './wire.ts';

/** Packets whose ports are not where a filter expects them: in fragments, and behind other headers. */
let lab: Lab;
let wire: Wire;
const [allowed, denied] = [1000, 2000];

beforeAll(async () => {
  lab = await Lab.start();
  ({ wire } = await startGateway(lab));
  const maps = ([4, 6] as const).map((family) => {
    const place = places[family];
    const routes = place.routes.slice(0, 1);
    const self = peer(1, { type: 'connector', address: place.own, endpoint: dialled(1), routes });
    const to = [{ kind: 'any' }] as const;
    const rule = { name: 'rule', from: [{ kind: 'peer', id: 2 }], to, protocol: 'udp' } as const;
    const rules = [{ ...rule, ports: [{ first: allowed, last: allowed }] }];
    const peers = [self, peer(2, { address: place.peerAt(2) })];
    return {
      self,
      map: { ...network(peers, { cidr: place.range, routes }), rules: { rules, requiresEnforcement: false } },
    };
  });
  load = async (family) => {
    const { self, map } = maps[family === 4 ? 0 : 1] as (typeof maps)[number];
    const nft = renderGateway({ map, self, masquerade: false, maps: [], forwards: true, services: [] });
    await wire.exchange({ nft, flush: true });
  };
});
let load: (family: Family) => Promise<void>;

afterAll(async () => {
  await wire?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

let sourcePort = 20_000;

function datagram(family: Family, to: Address, port: number, size = 2000): Buffer {
  sourcePort += 1;
  const payload = Buffer.alloc(size, '.');
  return buildPacket({ protocol: 'udp', from: places[family].peerAt(2), to, sourcePort, port, payload });
}

/** True if a part of what the member sends leaves the gateway there, or reaches it. */
async function arrives(family: Family, packets: readonly Buffer[], at: 'lan0' | 'host'): Promise<boolean> {
  const got = await wire.exchange({ send: packets.map((bytes) => ({ device: 'cpn0', bytes })) });
  return got.some(({ device, bytes }) => device === at && readPacket(bytes).from === places[family].peerAt(2));
}

type Change = readonly [name: string, change: (packet: Buffer) => Buffer[]];
const splits: readonly Change[] = [
  ['in two fragments', (packet) => fragment(packet, 1024)],
  ['in fragments that arrive in reverse', (packet) => fragment(packet, 512).reverse()],
  ['whose first fragment has its ports alone', (packet) => fragment(packet, 8)],
];
const headers: Readonly<Record<Family, readonly Change[]>> = {
  4: [['options', (packet) => [addOptions(packet)]]],
  6: [
    ['hop-by-hop options', (packet) => [addHeader(packet, 0)]],
    ['a routing header', (packet) => [addHeader(packet, 43)]],
    ['destination options', (packet) => [addHeader(packet, 60)]],
    ['the header of a whole fragment', (packet) => [addHeader(packet, 44)]],
    ['several headers', (packet) => [[60, 43, 60, 0].reduce<Buffer>(addHeader, packet)]],
  ],
};

describe.each([4, 6] as const)('IPv%d', (family) => {
  beforeAll(() => load(family));
  const place = places[family];
  const ends = { lan0: place.lan[0] ?? place.lanOwn, host: place.own } as const;

  describe.each(['lan0', 'host'] as const)('to %s', (end) => {
    const to = ends[end];
    const send = async (change: (packet: Buffer) => Buffer[], port: number, size?: number) =>
      arrives(family, change(datagram(family, to, port, size)), end);

    it.each(splits)('a datagram %s passes by its rule alone', async (_, change) => {
      expect(await send(change, allowed, 400)).toBe(true);
      expect(await send(change, denied, 400)).toBe(false);
      expect(await send(change, allowed)).toBe(true);
      expect(await send(change, denied)).toBe(false);
    });

    it('fragments without the first one never pass', async () => {
      expect(await send((packet) => fragment(packet, 1024).slice(1), allowed)).toBe(false);
    });

    it('fragments that overlap never pass with other ports', async () => {
      const change = (packet: Buffer) => {
        const [first, ...rest] = fragment(packet, 512);
        const [other] = fragment(datagram(family, to, denied), 512);
        return [...(first ? [first] : []), ...(other ? [other] : []), ...rest];
      };
      // The identifier is the same, so that the second first fragment may replace the other.
      const got = await wire.exchange({
        send: change(datagram(family, to, allowed)).map((bytes) => ({ device: 'cpn0', bytes })),
      });
      for (const { bytes } of got.filter(({ device }) => device === end)) {
        const header = family === 4 ? 20 : 40;
        expect(bytes.readUInt16BE(header + 2)).not.toBe(denied);
      }
    });

    it.each(headers[family])('a datagram behind %s passes by its rule alone', async (_, change) => {
      expect(await send(change, allowed, 200)).toBe(true);
      expect(await send(change, denied, 200)).toBe(false);
    });
  });
});
