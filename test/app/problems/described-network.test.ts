import { expect, it } from 'vitest';
import { describeEvaluation } from '../../../src/app/problems/describe-evaluation.ts';
import { type Evaluation, evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { ipv6Key } from '../../../src/core/host-state/sysctl-keys.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { noOutside } from '../../../src/core/routing/outside-report.ts';
import { markedSourceKey } from '../../../src/core/routing/tunnel-rules.ts';
import { noNotes } from '../../../src/store/notes.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, bare, dialled, network, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const edge = peer(2, { type: 'connector', endpoint: dialled(2) });
const map = mapAt('"1"', [edge]);

/** The description of a host that is up, after changes of its evaluation. */
async function describe(state: Joined, change: (evaluation: Evaluation) => Evaluation = (each) => each) {
  const simulated = await SimulatedHost.with(state);
  simulated.actual = { ...bare, sysctls: { [ipv6Key]: '0', [markedSourceKey]: '0' } };
  simulated.service.mapReplies = [answerWith(state.membership.map)];
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  const now = Math.floor(simulated.tools.now().getTime() / 1000);
  simulated.updatePeer(2, { latestHandshake: now });
  const evaluation = await evaluateNetwork(simulated.tools, await simulated.state());
  return describeEvaluation(change(evaluation), noNotes, now);
}

it.each([
  [true, 'connected'],
  [false, 'stale'],
])('a peer that failed is stale until it answers again: %s', async (back, state) => {
  const { peers } = await describe(joinedTo(map, { failed: [{ peer: 2, back }] }));
  expect(peers.map((each) => each.state)).toEqual([state]);
});

it('an endpoint that is not used is none of the peer, and the reason is there', async () => {
  const { peers } = await describe(joinedTo(map), (evaluation) => {
    const { actual, desired } = evaluation;
    const device = actual.device && { ...actual.device, peers: [] };
    return {
      ...evaluation,
      actual: { ...actual, device },
      desired: { ...desired, lostEndpoints: new Map([[2, 'is in the tunnel']]) },
    };
  });
  expect(peers).toMatchObject([{ endpoint: null, endpointRefused: 'is in the tunnel' }]);
});

it.each([
  [['198.51.100.2'], null],
  [['198.51.100.2', '198.51.100.3'], { name: 'edge.example.net', addresses: ['198.51.100.2', '198.51.100.3'] }],
])('the addresses of a name are a choice if there are several: %j', async (addresses, choice) => {
  const named = mapAt('"1"', [{ ...edge, endpoint: parseEndpoint('edge.example.net:51820') }]);
  const resolved = { 'edge.example.net': addresses.map(address) };
  expect((await describe(joinedTo(named, { resolved }))).peers).toMatchObject([{ endpointChoice: choice }]);
});

it('a route that this host serves is active in service, and otherwise on standby with the reason', async () => {
  const route = prefix('192.168.50.0/24');
  const self = peer(1, { type: 'connector', endpoint: dialled(1) });
  const enrollment = { ...joinedTo(map).enrollment, type: 'connector' as const };
  const routesAt = async (priority: number, changes: Partial<Joined> = {}) => {
    const shared = network([{ ...self, priority }, edge], { routes: [route] });
    return (await describe(joinedTo(shared, { enrollment, ...changes }))).routes;
  };
  const served = { prefix: route, via: null, remedy: null };
  expect(await routesAt(1)).toEqual([{ ...served, state: 'active', reason: 'served by this host' }]);
  expect(await routesAt(-1)).toEqual([
    { ...served, state: 'standby', reason: 'served by this host; standby: peer-2 is in service' },
  ]);
  expect(await routesAt(1, { failed: [{ peer: 1, back: false }] })).toEqual([
    { ...served, state: 'standby', reason: 'served by this host; no packet of any peer arrives' },
  ]);
});

it('a full tunnel that is down has nothing outside', async () => {
  const everything = prefix('0.0.0.0/0');
  const full = joinedTo(mapAt('"1"', [edge], { routes: [everything] }), {
    options: { ...options, allowRoutes: [everything] },
  });
  expect((await describe(full)).outside.entries.length).toBeGreaterThan(0);
  const down = await describe(full, (evaluation) => ({
    ...evaluation,
    state: { ...evaluation.state, enabled: false },
  }));
  expect([down.outside, down.drift]).toEqual([noOutside, []]);
});

it('a route that is only missing on the host is part of the drift, and a problem of its own without drift', async () => {
  const codesOf = async (changes: Evaluation['changes'] | null) => {
    const { problems } = await describe(joinedTo(map), (evaluation) => ({
      ...evaluation,
      actual: { ...evaluation.actual, routes: [] },
      changes: changes ?? evaluation.changes,
    }));
    return problems.map(({ code }) => code).filter((code) => code === 'drift' || code === 'route-missing');
  };
  expect(await codesOf([])).toEqual(['route-missing']);
  const change = { action: 'add', kind: 'route', target: 'x', before: null, after: null, reason: 'x' } as never;
  expect(await codesOf([change])).toEqual(['drift']);
});
