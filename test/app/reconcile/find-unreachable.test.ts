import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { findUnreachable } from '../../../src/app/reconcile/find-unreachable.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { address, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const [six, four] = [address('2001:db8::7'), address('198.51.100.7')];
const name = 'edge.example.net';
const named = peer(2, { type: 'connector', endpoint: parseEndpoint(`${name}:51820`) });

/** A host with a tunnel whose one peer has a name, and these addresses. */
async function start(addresses: readonly Address[]): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [named]), { resolved: { [name]: addresses } }));
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
  return simulated;
}

const loseSix = (simulated: SimulatedHost) => {
  simulated.sourceAddressTo = (destination) => (destination.includes(':') ? null : address('192.0.2.1'));
};
const endpointOf = async (simulated: SimulatedHost) =>
  (await evaluateNetwork(simulated.tools, await simulated.state())).desired.config.peers[0]?.endpoint?.host;
const now = (simulated: SimulatedHost) => Math.floor(simulated.tools.now().getTime() / 1000);

describe('a name with several addresses', () => {
  it('is used at the first that has a route', async () => {
    const simulated = await start([six, four]);
    expect(await endpointOf(simulated)).toBe(six);
    loseSix(simulated);
    expect(await endpointOf(simulated)).toBe(four);
    simulated.sourceAddressTo = () => null;
    expect(await endpointOf(simulated)).toBe(six);
  });

  it('moves at once where its address lost its route, though the handshake is recent', async () => {
    const simulated = await start([six, four]);
    simulated.updatePeer(2, { latestHandshake: now(simulated) - 10 });
    loseSix(simulated);
    const pass = await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
    expect(pass?.changes.map(({ kind }) => kind).toSorted()).toEqual(['file', 'peer']);
    expect(simulated.actual.device?.peers[0]?.endpoint?.host).toBe(four);
    simulated.sourceAddressTo = () => address('192.0.2.1');
    simulated.updatePeer(2, { latestHandshake: now(simulated) - 10 });
    const back = await evaluateNetwork(simulated.tools, await simulated.state());
    expect(back.steps).toEqual([]);
  });

  it('has no route where that of other packets leads into the tunnel, and none is for those of WireGuard', async () => {
    const simulated = await start([six, four]);
    const own = (await simulated.state()).membership.peer.address;
    simulated.sourceAddressTo = (destination) => (destination === six ? own : address('192.0.2.1'));
    const marks: (number | undefined)[] = [];
    simulated.tools.host.route = async (_, packet) => {
      marks.push(packet?.mark);
      return { link: null, why: 'none' };
    };
    expect(await findUnreachable(simulated.tools.host, await simulated.state(), null)).toEqual([six]);
    expect(marks).toEqual([expect.any(Number)]);
  });

  it.each([
    ['a route that this host takes', '192.168.50.7'],
    ['the range of the network', '10.77.0.9'],
    ['the tunnel, as the address of a peer', '10.77.0.2'],
  ])('is not used at an address in %s while there is another', async (_, tunnelPrefixes) => {
    const simulated = await start([address(tunnelPrefixes), four]);
    const { desired } = await evaluateNetwork(simulated.tools, await simulated.state());
    expect(desired.config.peers[0]?.endpoint?.host).toBe(four);
    expect(desired.routes).toContain(prefix('192.168.50.0/24'));
    expect(desired.lostEndpoints).toEqual(new Map());
  });

  it('is not used inside the tunnel where the other address has no route either', async () => {
    const simulated = await start([address('10.77.0.9'), six]);
    loseSix(simulated);
    const { desired } = await evaluateNetwork(simulated.tools, await simulated.state());
    expect(desired.config.peers[0]?.endpoint ?? null).toBeNull();
  });
});

it('a learned endpoint without a route gives way to the one of the network, though its handshake is recent', async () => {
  const simulated = await start([four]);
  simulated.updatePeer(2, { latestHandshake: now(simulated) - 10, endpoint: { host: six, port: 4000 } });
  expect((await evaluateNetwork(simulated.tools, await simulated.state())).steps).toEqual([]);
  loseSix(simulated);
  const { steps } = await evaluateNetwork(simulated.tools, await simulated.state());
  expect(steps).toMatchObject([{ do: 'configure-device', peers: [{ endpoint: { host: four } }] }]);
});

it('an endpoint without a choice is not looked at', async () => {
  const simulated = await start([six]);
  simulated.sourceAddressTo = () => {
    throw new Error('no question');
  };
  expect(await endpointOf(simulated)).toBe(six);
});
