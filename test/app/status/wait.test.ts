import { describe, expect, it } from 'vitest';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { waitFor } from '../../../src/app/status/wait.ts';
import type { KernelRoute } from '../../../src/core/host-state/kernel-route.ts';
import { dialled, peer } from '../../core/samples.ts';
import { answerWith, Desk, joinedTo, mapAt } from '../desk.ts';

const into = (link: string): KernelRoute => ({
  ...{ link, local: false, source: null, gateway: null, table: 'main', prefix: null, protocol: 'kernel' },
});

/** A host with a peer that it dials and one that it does not, and the addresses that were sent a datagram. */
async function startDesk() {
  const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) }), peer(4)]);
  const desk = await Desk.with(joinedTo(map));
  desk.answers = [answerWith(map)];
  await reconcileNetworks(desk.tools);
  const sent: string[] = [];
  desk.onHandshakeTrigger = (address) => sent.push(address);
  desk.routes = () => into('cpn0');
  return { desk, sent };
}

describe('to wait for a handshake', () => {
  it('starts one with the peers that have an endpoint', async () => {
    const { desk, sent } = await startDesk();
    desk.onHandshakeTrigger = (address) => {
      sent.push(address);
      desk.touch(2, { latestHandshake: desk.tools.now().getTime() / 1000 });
    };
    expect(await waitFor(desk.tools, undefined, { for: 'handshake' }, 60)).toMatchObject([{ missing: null }]);
    expect(sent).toEqual(['10.77.0.2']);
  });

  it('sends now and then until the time is over', async () => {
    const { desk, sent } = await startDesk();
    const [readiness] = await waitFor(desk.tools, undefined, { for: 'handshake' }, 12);
    expect(readiness?.missing).toBe('no peer has a fresh handshake');
    expect(sent).toHaveLength(3);
  });

  it('sends nothing to an address that the kernel leads past the tunnel', async () => {
    const { desk, sent } = await startDesk();
    desk.routes = () => into('eth0');
    await waitFor(desk.tools, undefined, { for: 'handshake' }, 12);
    expect(sent).toEqual([]);
  });

  it('sends nothing for one look, for another condition, or where the interface is down', async () => {
    const { desk, sent } = await startDesk();
    await waitFor(desk.tools, undefined, { for: 'handshake' }, 0);
    const { link } = desk.actual;
    desk.actual = { ...desk.actual, link: link && { ...link, addresses: [] } };
    await waitFor(desk.tools, undefined, { for: 'address' }, 12);
    desk.actual = { ...desk.actual, link: link && { ...link, up: false } };
    await waitFor(desk.tools, undefined, { for: 'handshake' }, 12);
    expect(sent).toEqual([]);
  });
});
