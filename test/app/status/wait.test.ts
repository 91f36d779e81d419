import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { waitFor } from '../../../src/app/status/wait.ts';
import { CommandFailed, NotJoined } from '../../../src/core/errors/index.ts';
import type { KernelRoute } from '../../../src/core/host-state/kernel-route.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const into = (link: string): KernelRoute => ({
  ...{ link, local: false, source: null, gateway: null, table: 'main', prefix: null, protocol: 'kernel' },
});

/** A host with a peer that it dials and one that it does not, and the addresses that were sent a datagram. */
async function startDesk(peers = [peer(2, { endpoint: dialled(2) }), peer(4)]) {
  const map = mapAt('"1"', peers);
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

describe('to wait', () => {
  it('needs a network', async () => {
    const { tools } = await SimulatedHost.empty();
    await expect(waitFor(tools, undefined, { for: 'address' }, 0)).rejects.toBeInstanceOf(NotJoined);
  });

  it('is to wait for each network: one that cannot be read or observed, and a join in progress', async () => {
    const { simulated } = await startDesk();
    const { tools } = simulated;
    const { membership: _, ...state } = joinedTo(mapAt('"1"', []), { interface: 'cpn1' });
    await tools.store.write({ ...state, membership: null });
    await tools.store.write({ ...(await simulated.state()), interface: 'cpn2' });
    await writeFile(join(dirname(tools.store.formerPath), 'cpn3.json'), '{', { mode: 0o600 });
    const { observe } = tools.host;
    tools.host.observe = async (wanted) => {
      if (wanted.link === 'cpn2') throw new CommandFailed('ip link show cpn2', 1, 'no');
      return observe(wanted);
    };
    const networks = await waitFor(tools, undefined, { for: 'address' }, 0);
    expect(networks.map(({ interface: link, missing }) => [link, missing])).toEqual([
      ['cpn0', null],
      ['cpn1', 'the join of cpn1 is not finished'],
      ['cpn2', expect.stringContaining('ip link show cpn2')],
      ['cpn3', expect.stringContaining('cpn3.json is damaged')],
    ]);
  });

  it('ends for a network that was taken down while the condition still holds, and names that otherwise', async () => {
    const { simulated } = await startDesk();
    await simulated.tools.store.write({ ...(await simulated.state()), enabled: false });
    const missing = async () => (await waitFor(simulated.tools, undefined, { for: 'address' }, 0))[0]?.missing;
    expect(await missing()).toBeNull();
    simulated.actual = { ...simulated.actual, link: null, device: null };
    expect(await missing()).toContain('cpn0 was taken down');
  });

  it('ends with its timeout, and reports what is missing once', async () => {
    const { simulated } = await startDesk();
    simulated.actual = { ...simulated.actual, link: null, device: null };
    const reported: string[] = [];
    simulated.tools.progress = (step) => void reported.push(step);
    const { seconds } = simulated;
    await waitFor(simulated.tools, undefined, { for: 'address' }, 0.6);
    expect(simulated.seconds - seconds).toBeCloseTo(0.6);
    expect(reported).toEqual(['waiting: the interface cpn0 is missing']);
  });

  it('sends datagrams to at most 16 peers of a network', async () => {
    const peers = Array.from({ length: 20 }, (_, at) => peer(at + 2, { endpoint: dialled(at + 2) }));
    const { simulated, sent } = await startDesk(peers);
    await waitFor(simulated.tools, undefined, { for: 'handshake' }, 1);
    expect(sent).toHaveLength(16);
  });
});
