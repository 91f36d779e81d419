import { describe, expect, it } from 'vitest';
import { readTunnel } from '../../../src/app/export/read-tunnel.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const map = mapAt('1', [peer(2, { endpoint: dialled(2) })]);

async function startJoined(): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  await reconcileNetworks(simulated.tools);
  return simulated;
}

describe('the tunnel that is exported', () => {
  it('is that of the wg-quick file, read without looking at the host', async () => {
    const simulated = await startJoined();
    const { observations: looks } = simulated;
    for (const network of [undefined, 'cpn0', 'office', '7']) {
      const { interface: link, config } = await readTunnel(simulated.tools, network);
      expect([link, config.peers.map(({ endpoint }) => endpoint)]).toEqual(['cpn0', [dialled(2)]]);
    }
    expect(simulated.observations).toBe(looks);
  });

  it('fails when the file is missing, or has settings that cpn does not write', async () => {
    const { tools } = await startJoined();
    const text = (await tools.store.readConfig('cpn0')) ?? '';
    await tools.store.writeConfig('cpn0', text.replace('MTU', 'PostUp = touch /tmp/x\nMTU'));
    await expect(readTunnel(tools, undefined)).rejects.toMatchObject({
      name: 'UnreadableFile',
      message: expect.stringMatching(
        /cpn0\.conf was changed by another program: .*; "cpn reconcile cpn0" writes it again/,
      ),
    });
    const gone = { ...tools.store, readConfig: async () => null };
    await expect(readTunnel({ ...tools, store: gone }, 'cpn0')).rejects.toThrow('is missing');
  });

  it('must be named where there are several, and joined', async () => {
    const { tools } = await startJoined();
    await tools.store.write({ ...joinedTo(map), interface: 'cpn1' });
    await expect(readTunnel(tools, undefined)).rejects.toThrow('in 2 networks; name one of cpn0, cpn1');
    await expect(readTunnel(tools, 'elsewhere')).rejects.toMatchObject({ name: 'NotJoined' });
    for (const link of ['cpn0', 'cpn1']) await tools.store.forget(link, []);
    await expect(readTunnel(tools, undefined)).rejects.toThrow('no network is joined');
  });
});
