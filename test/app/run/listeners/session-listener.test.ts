import { expect, it } from 'vitest';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { SessionListener } from '../../../../src/app/run/listeners/session-listener.ts';
import type { SocketEndpoint } from '../../../../src/core/net/endpoint.ts';
import { dialled, network, peer } from '../../../core/samples.ts';
import { joinedTo } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';

const self = peer(1, { endpoint: dialled(1) });
const origin = peer(2, { endpoint: dialled(2) });
const laptop = peer(3, { endpoint: null });
const idle = peer(4, { endpoint: dialled(4) });

/** A host with sessions to the origin and to the laptop, whose endpoint WireGuard has learned. */
async function start() {
  const simulated = await SimulatedHost.with(joinedTo(network([self, origin, laptop, idle])));
  const triggered: string[] = [];
  simulated.onHandshakeTrigger = (to) => void triggered.push(to);
  const listener = new SessionListener(simulated.tools, 'cpn0');
  const pass = async () => {
    const made = await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
    simulated.steps.length = 0;
    if (made !== null) await listener.onPass(made);
  };
  await pass();
  const latestHandshake = Math.floor(simulated.tools.now().getTime() / 1000);
  for (const number of [2, 3])
    simulated.updatePeer(number, { latestHandshake, endpoint: dialled(number) as SocketEndpoint });
  await pass();
  const removeLink = () => {
    simulated.actual = { ...simulated.actual, link: null, device: null };
  };
  return { simulated, triggered, pass, removeLink };
}

it('starts a handshake with each peer that had a session, once the interface is there again', async () => {
  const { simulated, triggered, pass, removeLink } = await start();
  removeLink();
  await pass();
  expect(triggered.toSorted()).toEqual([origin.address, laptop.address]);
  const { peers } = simulated.actual.device ?? { peers: [] };
  expect(peers.find(({ publicKey }) => publicKey === laptop.publicKey)?.endpoint).toEqual(dialled(3));
  expect(simulated.steps.map((step) => step.do)).toEqual(['renew-peers']);
});

it('starts none while the interface stays', async () => {
  const { simulated, triggered, pass } = await start();
  await pass();
  expect([triggered, simulated.steps]).toEqual([[], []]);
});
