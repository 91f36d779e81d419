import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { PeerProber } from '../../../../src/app/run/health/peer-prober.ts';
import type { ProbeResult } from '../../../../src/contract/health.ts';
import { dialled, peer } from '../../../core/samples.ts';
import { eventually } from '../../../lab/eventually.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const hub = peer(2, { type: 'connector', endpoint: dialled(2) });
const edge = peer(3, { endpoint: dialled(3) });
const relayed = peer(4);
const everybody = [1, 2, 3, 4, 99];

/** A host that reaches a hub and another host directly, and a third one through the hub. */
async function start() {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [hub, edge, relayed])));
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
  const probed: string[] = [];
  const { isTcpReachable } = simulated.tools.host;
  simulated.tools.host.isTcpReachable = (address, ms) => {
    probed.push(address);
    return isTcpReachable(address, ms);
  };
  simulated.onHandshakeTrigger = (address) => probed.push(address);
  const taken: ProbeResult[] = [];
  const prober = new PeerProber(simulated.tools, 'cpn0', (probes) => taken.push(...probes));
  prober.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
  const ask = (times = 1) => {
    for (let time = 0; time < times; time += 1) prober.receive([{ kind: 'probe', data: { peers: everybody } }]);
  };
  return { simulated, probed, taken, ask };
}

it('the control plane has a host probe peers that it reaches directly, at their addresses in the tunnel, and no others', async () => {
  const { simulated, probed, taken, ask } = await start();
  simulated.reachable.add(hub.address).add(edge.address).add(relayed.address);
  ask();
  await eventually('it reports', () => simulated.service.reports.length > 0);
  const results = [2, 3].map((id) => ({ peer: id, answered: true }));
  expect(simulated.service.reports).toEqual([{ probes: results }]);
  await eventually('its reports go on from these results', () => taken.length > 0);
  expect(taken).toEqual(results);
  expect(new Set(probed)).toEqual(new Set([hub.address, edge.address]));
  expect(simulated.steps.filter(({ do: kind }) => kind === 'renew-peers')).toEqual([]);
});

it('a peer that does not answer gets two handshakes, however many questions come at once', async () => {
  const { simulated, probed, ask } = await start();
  simulated.reachable.add(hub.address);
  simulated.updatePeer(3, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  ask(1_000);
  await eventually('it reports', () => simulated.service.reports.length > 1);
  expect(simulated.service.reports[0]?.probes).toContainEqual({ peer: 3, answered: false });
  // One question that is being answered, and one for all that came meanwhile.
  expect(simulated.service.reports).toHaveLength(2);
  const renewed = simulated.steps.flatMap((step) => (step.do === 'renew-peers' ? step.peers : []));
  expect(renewed.map(({ publicKey }) => publicKey)).toEqual(Array(4).fill(edge.publicKey));
  expect(probed).not.toContain(relayed.address);
});
