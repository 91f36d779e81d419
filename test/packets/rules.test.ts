import { afterAll, beforeAll, expect, it } from 'vitest';
import { Lab } from '../lab/lab.ts';
import { startGateway } from './gateway.ts';
import { comparePackets } from './rules-packets.ts';
import type { Wire } from './wire.ts';

let lab: Lab;
let wire: Wire;

beforeAll(async () => {
  lab = await Lab.start();
  ({ wire } = await startGateway(lab));
});

afterAll(async () => {
  await wire?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

/** Packets on which rules decide. */
const kinds = [
  ...['a packet to this host', 'a packet of this host', 'a packet to the LAN', 'a packet of the LAN'],
  ...['a packet to a mapped LAN', 'a packet of a mapped LAN', 'a packet to the internet'],
  ...['a packet to a container', 'a packet of a container', 'a packet through this host'],
  ...['a packet to a phone', 'a packet of the LAN to this host'],
];

it('what arrives in 200 networks is what their rules allow', async () => {
  // Each kind of packet is in the networks of this seed, refused and not.
  const counted = await comparePackets(wire, 200, 40, 20_261_127);
  for (const kind of kinds) {
    const { arrived = 0, refused = 0 } = counted.get(kind) ?? {};
    expect([kind, arrived > 0, refused > 0]).toEqual([kind, true, true]);
  }
  expect(counted.get('a relayed packet')?.arrived).toBeGreaterThan(0);
  expect(counted.get('a packet of the internet')?.arrived).toBe(0);
});
