import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { findUnreachable } from '../../../src/app/reconcile/find-unreachable.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { address, peer, prefix } from '../../core/samples.ts';
import { Desk, joinedTo, mapAt } from '../desk.ts';

const [six, four] = [address('2001:db8::7'), address('198.51.100.7')];
const name = 'edge.example.net';
const named = peer(2, { type: 'connector', endpoint: parseEndpoint(`${name}:51820`) });

/** A host with a tunnel whose one peer has a name, and these addresses. */
async function start(addresses: readonly Address[]): Promise<Desk> {
  const desk = await Desk.with(joinedTo(mapAt('"1"', [named]), { resolved: { [name]: addresses } }));
  await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 1 });
  return desk;
}

const loseSix = (desk: Desk) => {
  desk.sourceAddressTo = (destination) => (destination.includes(':') ? null : address('192.0.2.1'));
};
const endpointOf = async (desk: Desk) =>
  (await evaluateNetwork(desk.tools, await desk.state())).desired.config.peers[0]?.endpoint?.host;
const now = (desk: Desk) => Math.floor(desk.tools.now().getTime() / 1000);

describe('a name with several addresses', () => {
  it('is used at the first that has a route', async () => {
    const desk = await start([six, four]);
    expect(await endpointOf(desk)).toBe(six);
    loseSix(desk);
    expect(await endpointOf(desk)).toBe(four);
    desk.sourceAddressTo = () => null;
    expect(await endpointOf(desk)).toBe(six);
  });

  it('moves at once where its address lost its route, though the handshake is recent', async () => {
    const desk = await start([six, four]);
    desk.touch(2, { latestHandshake: now(desk) - 10 });
    loseSix(desk);
    const pass = await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 1 });
    expect(pass?.changes.map(({ kind }) => kind).toSorted()).toEqual(['file', 'peer']);
    expect(desk.actual.device?.peers[0]?.endpoint?.host).toBe(four);
    desk.sourceAddressTo = () => address('192.0.2.1');
    desk.touch(2, { latestHandshake: now(desk) - 10 });
    const back = await evaluateNetwork(desk.tools, await desk.state());
    expect(back.steps).toEqual([]);
  });

  it('has no route where that of other packets leads into the tunnel, and none is for those of WireGuard', async () => {
    const desk = await start([six, four]);
    const own = (await desk.state()).membership.peer.address;
    desk.sourceAddressTo = (destination) => (destination === six ? own : address('192.0.2.1'));
    const marks: (number | undefined)[] = [];
    desk.tools.host.route = async (_, packet) => {
      marks.push(packet?.mark);
      return { link: null, why: 'none' };
    };
    expect(await findUnreachable(desk.tools.host, await desk.state(), null)).toEqual([six]);
    expect(marks).toEqual([expect.any(Number)]);
  });

  it.each([
    ['a route that this host takes', '192.168.50.7'],
    ['the range of the network', '10.77.0.9'],
    ['the tunnel, as the address of a peer', '10.77.0.2'],
  ])('is not used at an address in %s while there is another', async (_, tunnelPrefixes) => {
    const desk = await start([address(tunnelPrefixes), four]);
    const { desired } = await evaluateNetwork(desk.tools, await desk.state());
    expect(desired.config.peers[0]?.endpoint?.host).toBe(four);
    expect(desired.routes).toContain(prefix('192.168.50.0/24'));
    expect(desired.lostEndpoints).toEqual(new Map());
  });

  it('is not used inside the tunnel where the other address has no route either', async () => {
    const desk = await start([address('10.77.0.9'), six]);
    loseSix(desk);
    const { desired } = await evaluateNetwork(desk.tools, await desk.state());
    expect(desired.config.peers[0]?.endpoint ?? null).toBeNull();
  });
});

it('a learned endpoint without a route gives way to the one of the network, though its handshake is recent', async () => {
  const desk = await start([four]);
  desk.touch(2, { latestHandshake: now(desk) - 10, endpoint: { host: six, port: 4000 } });
  expect((await evaluateNetwork(desk.tools, await desk.state())).steps).toEqual([]);
  loseSix(desk);
  const { steps } = await evaluateNetwork(desk.tools, await desk.state());
  expect(steps).toMatchObject([{ do: 'configure-device', peers: [{ endpoint: { host: four } }] }]);
});

it('an endpoint without a choice is not looked at', async () => {
  const desk = await start([six]);
  desk.sourceAddressTo = () => {
    throw new Error('no question');
  };
  expect(await endpointOf(desk)).toBe(six);
});
