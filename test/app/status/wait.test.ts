import { describe, expect, it } from 'vitest';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { waitFor } from '../../../src/app/status/wait.ts';
import type { KernelRoute } from '../../../src/core/host-state/kernel-route.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const into = (link: string): KernelRoute => ({
  ...{ link, local: false, source: null, gateway: null, table: 'main', prefix: null, protocol: 'kernel' },
});

/** A host with a peer that it dials and one that it does not, and the addresses that were sent a datagram. */
async function startDesk() {
  const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) }), peer(4)]);
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  await reconcileNetworks(simulated.tools);
  const sent: string[] = [];
  simulated.onHandshakeTrigger = (address) => sent.push(address);
  simulated.onRoute = () => into('cpn0');
  return { simulated, sent };
}

describe('to wait for a handshake', () => {
  it('starts one with the peers that have an endpoint', async () => {
    const { simulated, sent } = await startDesk();
    simulated.onHandshakeTrigger = (address) => {
      sent.push(address);
      simulated.updatePeer(2, { latestHandshake: simulated.tools.now().getTime() / 1000 });
    };
    expect(await waitFor(simulated.tools, undefined, { for: 'handshake' }, 60)).toMatchObject([{ missing: null }]);
    expect(sent).toEqual(['10.77.0.2']);
  });

  it('sends now and then until the time is over', async () => {
    const { simulated, sent } = await startDesk();
    const [readiness] = await waitFor(simulated.tools, undefined, { for: 'handshake' }, 12);
    expect(readiness?.missing).toBe('no peer has a fresh handshake');
    expect(sent).toHaveLength(3);
  });

  it('sends nothing to an address that the kernel leads past the tunnel', async () => {
    const { simulated, sent } = await startDesk();
    simulated.onRoute = () => into('eth0');
    await waitFor(simulated.tools, undefined, { for: 'handshake' }, 12);
    expect(sent).toEqual([]);
  });

  it('sends nothing for one look, for another condition, or where the interface is down', async () => {
    const { simulated, sent } = await startDesk();
    await waitFor(simulated.tools, undefined, { for: 'handshake' }, 0);
    const { link } = simulated.actual;
    simulated.actual = { ...simulated.actual, link: link && { ...link, addresses: [] } };
    await waitFor(simulated.tools, undefined, { for: 'address' }, 12);
    simulated.actual = { ...simulated.actual, link: link && { ...link, up: false } };
    await waitFor(simulated.tools, undefined, { for: 'handshake' }, 12);
    expect(sent).toEqual([]);
  });
});
