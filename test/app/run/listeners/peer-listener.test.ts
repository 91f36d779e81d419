import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { PeerListener } from '../../../../src/app/run/listeners/peer-listener.ts';
import { dialled, keyPair, peer } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const state = joinedTo(mapAt('"1"', [peer(2, { endpoint: dialled(2) })]));
const notes = (simulated: SimulatedHost) => simulated.tools.store.readNotes('cpn0');

describe('a peer that does not answer', () => {
  it('is noted although its handshake is fresh, with the bytes received from it, until it sends again', async () => {
    const simulated = await SimulatedHost.with(state);
    await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
    const watch = new PeerListener(simulated.tools, 'cpn0');
    const see = async (rxBytes: number, txBytes: number) => {
      simulated.seconds += 20;
      const latestHandshake = Math.floor(simulated.tools.now().getTime() / 1000) - 60;
      simulated.updatePeer(2, { rxBytes, txBytes, latestHandshake });
      await watch.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
      return (await notes(simulated)).silent;
    };
    expect(await see(100, 100)).toEqual({});
    expect(await see(100, 228)).toEqual({});
    expect(await see(100, 356)).toEqual({ [keyPair(2).publicKey]: 100 });
    expect(await see(132, 388)).toEqual({});
  });

  it.each([25, null])(
    'is noted without a session too when keepalives should have renewed it: %s',
    async (keepalive) => {
      const simulated = await SimulatedHost.with(state);
      await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
      const watch = new PeerListener(simulated.tools, 'cpn0');
      const latestHandshake = Math.floor(simulated.tools.now().getTime() / 1000) - 200;
      for (const txBytes of [100, 248, 396]) {
        simulated.updatePeer(2, { rxBytes: 100, txBytes, latestHandshake, keepalive });
        await watch.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
        simulated.seconds += 20;
      }
      expect((await notes(simulated)).silent).toEqual(keepalive === null ? {} : { [keyPair(2).publicKey]: 100 });
    },
  );
});
