import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { PeerListener } from '../../../../src/app/run/listeners/peer-listener.ts';
import { dialled, keyPair, peer } from '../../../core/samples.ts';
import { Desk, joinedTo, mapAt } from '../../desk.ts';
import { passOf } from '../pass-of.ts';

const state = joinedTo(mapAt('"1"', [peer(2, { endpoint: dialled(2) })]));
const notes = (desk: Desk) => desk.tools.store.readNotes('cpn0');

describe('a peer that does not answer', () => {
  it('is noted although its handshake is fresh, with the bytes received from it, until it sends again', async () => {
    const desk = await Desk.with(state);
    await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
    const watch = new PeerListener(desk.tools, 'cpn0');
    const see = async (rxBytes: number, txBytes: number) => {
      desk.seconds += 20;
      const latestHandshake = Math.floor(desk.tools.now().getTime() / 1000) - 60;
      desk.touch(2, { rxBytes, txBytes, latestHandshake });
      await watch.onPass(passOf(await evaluateNetwork(desk.tools, await desk.state())));
      return (await notes(desk)).silent;
    };
    expect(await see(100, 100)).toEqual({});
    expect(await see(100, 228)).toEqual({});
    expect(await see(100, 356)).toEqual({ [keyPair(2).publicKey]: 100 });
    expect(await see(132, 388)).toEqual({});
  });

  it.each([25, null])(
    'is noted without a session too when keepalives should have renewed it: %s',
    async (keepalive) => {
      const desk = await Desk.with(state);
      await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
      const watch = new PeerListener(desk.tools, 'cpn0');
      const latestHandshake = Math.floor(desk.tools.now().getTime() / 1000) - 200;
      for (const txBytes of [100, 248, 396]) {
        desk.touch(2, { rxBytes: 100, txBytes, latestHandshake, keepalive });
        await watch.onPass(passOf(await evaluateNetwork(desk.tools, await desk.state())));
        desk.seconds += 20;
      }
      expect((await notes(desk)).silent).toEqual(keepalive === null ? {} : { [keyPair(2).publicKey]: 100 });
    },
  );
});
