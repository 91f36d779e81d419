import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { PeerProber } from '../../../../src/app/run/health/peer-prober.ts';
import type { ProbeResult } from '../../../../src/contract/health.ts';
import { dialled, peer } from '../../../core/samples.ts';
import { eventually } from '../../../lab/eventually.ts';
import { Desk, joinedTo, mapAt } from '../../desk.ts';
import { passOf } from '../pass-of.ts';

const hub = peer(2, { type: 'connector', endpoint: dialled(2) });
const edge = peer(3, { endpoint: dialled(3) });
const relayed = peer(4);
const everybody = [1, 2, 3, 4, 99];

/** A host that reaches a hub and another host directly, and a third one through the hub. */
async function start() {
  const desk = await Desk.with(joinedTo(mapAt('"1"', [hub, edge, relayed])));
  await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 1 });
  const probed: string[] = [];
  const { isTcpReachable } = desk.tools.host;
  desk.tools.host.isTcpReachable = (address, ms) => {
    probed.push(address);
    return isTcpReachable(address, ms);
  };
  desk.onHandshakeTrigger = (address) => probed.push(address);
  const taken: ProbeResult[] = [];
  const prober = new PeerProber(desk.tools, 'cpn0', (probes) => taken.push(...probes));
  prober.onPass(passOf(await evaluateNetwork(desk.tools, await desk.state())));
  const ask = (times = 1) => {
    for (let time = 0; time < times; time += 1) prober.receive([{ kind: 'probe', data: { peers: everybody } }]);
  };
  return { desk, probed, taken, ask };
}

it('the control plane has a host probe peers that it reaches directly, at their addresses in the tunnel, and no others', async () => {
  const { desk, probed, taken, ask } = await start();
  desk.alive.add(hub.address).add(edge.address).add(relayed.address);
  ask();
  await eventually('it reports', () => desk.reports.length > 0);
  const results = [2, 3].map((id) => ({ peer: id, answered: true }));
  expect(desk.reports).toEqual([{ probes: results }]);
  await eventually('its reports go on from these results', () => taken.length > 0);
  expect(taken).toEqual(results);
  expect(new Set(probed)).toEqual(new Set([hub.address, edge.address]));
  expect(desk.steps.filter(({ do: kind }) => kind === 'renew-peers')).toEqual([]);
});

it('a peer that does not answer gets two handshakes, however many questions come at once', async () => {
  const { desk, probed, ask } = await start();
  desk.alive.add(hub.address);
  desk.touch(3, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
  ask(1_000);
  await eventually('it reports', () => desk.reports.length > 1);
  expect(desk.reports[0]?.probes).toContainEqual({ peer: 3, answered: false });
  // One question that is being answered, and one for all that came meanwhile.
  expect(desk.reports).toHaveLength(2);
  const renewed = desk.steps.flatMap((step) => (step.do === 'renew-peers' ? step.peers : []));
  expect(renewed.map(({ publicKey }) => publicKey)).toEqual(Array(4).fill(edge.publicKey));
  expect(probed).not.toContain(relayed.address);
});
