import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { PeerListener } from '../../../src/app/run/listeners/peer-listener.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { statusToText } from '../../../src/cli/output/show-status.ts';
import { dialled, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { passOf } from '../run/pass-of.ts';
import { SimulatedHost } from '../simulated-host.ts';

const lan = prefix('192.168.50.0/24');
const edge = peer(2, { type: 'connector', endpoint: dialled(2), name: 'edge-1' });

/**
 * A host that sends a handshake to the connector every five seconds; its daemon makes a pass every thirty. A host without an
 * endpoint sends keepalives.
 */
async function startUnanswered(hasEndpoint: boolean) {
  const { peers, ...map } = mapAt('"1"', [edge]);
  const endpoint = hasEndpoint ? dialled(1) : null;
  const listed = peers.map((each) => (each.id === 1 ? { ...each, endpoint } : each));
  const simulated = await SimulatedHost.with(joinedTo({ ...map, peers: listed, routes: [lan] }));
  await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  const daemon = new PeerListener(simulated.tools, 'cpn0');
  const pass = async (sends: boolean) => {
    const { txBytes = 0 } = simulated.actual.device?.peers[0] ?? {};
    simulated.seconds += 30;
    simulated.updatePeer(2, { txBytes: txBytes + (sends ? 6 * 148 : 0) });
    await daemon.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
    const [status] = await readStatus(simulated.tools);
    if (status === undefined) throw new Error('there is no status');
    return status;
  };
  return { simulated, pass };
}

it.each([false, true])(
  'a connector that never answered degrades the network after a minute (own endpoint: %s)',
  async (hasEndpoint) => {
    const { simulated, pass } = await startUnanswered(hasEndpoint);
    const [first, second] = [await pass(true), await pass(true)];
    const third = await pass(true);
    expect(first).toMatchObject({ state: 'up', routes: [{ prefix: lan, state: 'active', reason: null }] });
    const last = hasEndpoint ? third : second;
    expect(last).toMatchObject({
      ...{ state: 'degraded', peers: [{ name: 'edge-1', state: 'never' }] },
      problems: [{ code: 'peer-silent', summary: 'edge-1 does not answer', remedy: 'cpn explain 10.77.0.2' }],
      routes: [{ prefix: lan, via: 'edge-1', state: 'active', reason: 'does not answer' }],
    });
    expect(statusToText(last, simulated.tools.now())).toContain('does not answer');
    simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000), rxBytes: 92 });
    const answered = await pass(true);
    expect([answered.state, answered.routes[0]?.reason]).toEqual(['up', null]);
  },
);

it('without keepalives, the network is up again once nothing is sent to it any more', async () => {
  const { pass } = await startUnanswered(true);
  const states: string[] = [];
  for (const sends of [true, true, true, true, ...Array.from({ length: 7 }, () => false)])
    states.push((await pass(sends)).state);
  expect(states).toContain('degraded');
  expect(states.at(-1)).toBe('up');
});
