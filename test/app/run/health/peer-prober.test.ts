import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { PeerProber } from '../../../../src/app/run/health/peer-prober.ts';
import type { ProbeResult } from '../../../../src/contract/health.ts';
import { Locked, Unreachable } from '../../../../src/core/errors/index.ts';
import type { Peer } from '../../../../src/core/map/model.ts';
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
async function start(peers: readonly Peer[] = [hub, edge, relayed]) {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', peers)));
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
  const ask = (times = 1, asked: readonly number[] = everybody) => {
    for (let time = 0; time < times; time += 1) prober.receive([{ kind: 'probe', data: { peers: [...asked] } }]);
  };
  return { simulated, probed, taken, prober, ask };
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

it('reports many peers in batches, also after one that could not be reported', async () => {
  const many = Array.from({ length: 40 }, (_, index) => peer(index + 2, { endpoint: dialled(index + 2) }));
  const { simulated, ask } = await start(many);
  for (const { address } of many) simulated.reachable.add(address);
  const sizes: unknown[] = [];
  simulated.service.onReport = ({ probes }) => {
    sizes.push(probes?.length);
    if (sizes.length === 1)
      throw new Unreachable('https://x', 'no', { delivered: true, heard: false, retryAfterMs: null });
    return { reachableBy: 1, witnesses: 1 };
  };
  ask(
    1,
    many.map(({ id }) => Number(id)),
  );
  await eventually('the second batch', () => simulated.service.reports.length > 0);
  expect(sizes).toEqual([32, 8]);
});

it('reports no silence of a peer whose handshake could not be forced', async () => {
  const { simulated, ask } = await start();
  simulated.reachable.add(hub.address);
  simulated.updatePeer(3, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  simulated.tools.store.lock = async () => {
    throw new Locked('/run/lock', '7');
  };
  ask();
  await eventually('a report', () => simulated.service.reports.length > 0);
  expect(simulated.service.reports).toEqual([{ probes: [{ peer: 2, answered: true }] }]);
});

it('ends with the daemon, at the next reading, and reports nothing after that', async () => {
  const { simulated, prober, ask } = await start();
  simulated.updatePeer(3, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  const stop = new AbortController();
  const order: string[] = [];
  const ended = prober.run(stop.signal).then(() => order.push('ended'));
  let readings = 0;
  const { device } = simulated.tools.host;
  simulated.tools.host.device = async (link) => {
    readings += 1;
    if (readings === 5) {
      stop.abort();
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
      order.push('read');
    }
    return device(link);
  };
  ask();
  await ended;
  expect([order, readings]).toEqual([['read', 'ended'], 5]);
  expect(simulated.service.reports).toEqual([]);
});
