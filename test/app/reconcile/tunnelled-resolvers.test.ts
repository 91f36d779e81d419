import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { checkKeptResolvers } from '../../../src/core/doctor/check-resolvers.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { makeRule } from '../../../src/core/host-state/policy-rule.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { address, dialled, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const lan = prefix('192.168.50.0/24');
const resolver = address('192.168.50.53');
const elsewhere = address('198.51.100.53');
const withRoute = (revision: string) => mapAt(revision, [relay], { routes: [lan] });
const withoutRoute = (revision: string) => mapAt(revision, [relay], { routes: [] });

/** A host with an accepted route, whose only resolver is outside of it. */
async function startDesk(): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(withRoute('"1"')));
  observe(simulated, { resolvers: [elsewhere] });
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  simulated.updatePeer(2, {
    latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) - 10,
    rxBytes: 100,
    txBytes: 100,
  });
  return simulated;
}

function observe(simulated: SimulatedHost, changes: Partial<Underlay>): void {
  simulated.actual = { ...simulated.actual, underlay: { ...simulated.actual.underlay, ...changes } };
}

async function pass(simulated: SimulatedHost, map: NetworkMap | null = null): Promise<void> {
  if (map !== null) simulated.service.mapReplies = [answerWith(map)];
  await passNetwork(simulated.tools, 'cpn0', map === null ? noUpdate : { map, resolved: null }, { withinMs: 20_000 });
}

const routesOf = (simulated: SimulatedHost) => simulated.actual.routes.map((route) => route.prefix);
const throwsOf = (simulated: SimulatedHost) => simulated.actual.throwRoutes ?? [];
const tunnelled = [{ address: resolver, route: lan }];

describe('a resolver that is reached through an accepted route', () => {
  it('is reached through it again after the route was gone, also for long', async () => {
    const simulated = await startDesk();
    observe(simulated, { resolvers: [resolver] });
    await pass(simulated);
    expect((await simulated.state()).tunnelledResolvers).toEqual(tunnelled);
    await pass(simulated, withoutRoute('"2"'));
    expect(routesOf(simulated)).toEqual([]);
    // Each of these passes has neither the route nor a file with it.
    for (let passes = 0; passes < 3; passes += 1) await pass(simulated);
    await pass(simulated, withRoute('"3"'));
    expect([routesOf(simulated), throwsOf(simulated)]).toEqual([[lan], []]);
    const { keptOutside, tunnelledResolvers } = await simulated.state();
    expect({ keptOutside, tunnelledResolvers }).toEqual({ keptOutside: [], tunnelledResolvers: tunnelled });
  });

  it('does not cost the route where another program has a policy rule', async () => {
    const simulated = await startDesk();
    observe(simulated, { resolvers: [resolver] });
    await pass(simulated, withoutRoute('"2"'));
    const rules = [
      ...simulated.actual.rules,
      { ...makeRule(100, { fwmark: 0x77, table: 'main' }), protocol: 'static' },
    ];
    simulated.actual = { ...simulated.actual, rules };
    await pass(simulated, withRoute('"3"'));
    expect(routesOf(simulated)).toEqual([lan]);
  });

  it('is remembered while a local resolver may have more servers than can be seen', async () => {
    const simulated = await startDesk();
    observe(simulated, { resolvers: [resolver] });
    await pass(simulated);
    await pass(simulated, withoutRoute('"2"'));
    observe(simulated, { resolvers: [] });
    await pass(simulated);
    expect((await simulated.state()).tunnelledResolvers).toEqual(tunnelled);
  });

  it('is remembered of a local resolver without readable settings, whose socket to it has the tunnel address', async () => {
    const simulated = await startDesk();
    const stub = { address: address('127.0.0.1'), isListening: true, program: 'dnscrypt-proxy', isStated: false };
    const use = (servers: { observed: Address[]; tunnelled: Address[] }) =>
      observe(simulated, { resolvers: [stub.address], stubs: [{ ...stub, stated: [], ...servers }] });
    use({ observed: [], tunnelled: [resolver] });
    await pass(simulated);
    // While the route is gone, its queries go out by another address.
    use({ observed: [resolver], tunnelled: [] });
    await pass(simulated, withoutRoute('"2"'));
    await pass(simulated, withRoute('"3"'));
    expect([routesOf(simulated), throwsOf(simulated)]).toEqual([[lan], []]);
    use({ observed: [], tunnelled: [] });
    await pass(simulated);
    expect((await simulated.state()).tunnelledResolvers).toEqual(tunnelled);
  });

  it('is forgotten once the host names other resolvers: one of the same address is outside from then on', async () => {
    const simulated = await startDesk();
    observe(simulated, { resolvers: [resolver] });
    await pass(simulated);
    await pass(simulated, withoutRoute('"2"'));
    observe(simulated, { resolvers: [elsewhere] });
    await pass(simulated);
    expect((await simulated.state()).tunnelledResolvers).toEqual([]);
    observe(simulated, { resolvers: [resolver] });
    await pass(simulated, withRoute('"3"'));
    expect(throwsOf(simulated)).toMatchObject([{ prefix: '192.168.50.53/32' }]);
  });

  it('is one of the network only while the route is let through', async () => {
    const simulated = await startDesk();
    observe(simulated, { resolvers: [resolver] });
    await pass(simulated);
    const { desired, state } = await evaluateNetwork(simulated.tools, await simulated.state(), { disallowed: [lan] });
    expect(desired.keptOutside).toMatchObject([{ address: resolver }]);
    expect(state.tunnelledResolvers).toEqual([]);
  });
});

describe('a resolver that was outside', () => {
  it('stays outside when the route is back', async () => {
    const simulated = await SimulatedHost.with(joinedTo(withRoute('"1"')));
    observe(simulated, { resolvers: [resolver] });
    await pass(simulated);
    for (const map of [withoutRoute('"2"'), withRoute('"3"')]) await pass(simulated, map);
    expect(throwsOf(simulated)).toMatchObject([{ prefix: '192.168.50.53/32' }]);
    expect((await simulated.state()).tunnelledResolvers).toEqual([]);
  });

  it('is queried by doctor, which names the route where it does not answer', () => {
    expect(checkKeptResolvers('cpn0', [{ address: resolver, route: lan, answers: true }])).toMatchObject([
      { verdict: 'ok' },
    ]);
    expect(checkKeptResolvers('cpn0', [{ address: resolver, route: lan, answers: false }])).toMatchObject([
      { verdict: 'problem', remedy: expect.stringContaining('cpn set cpn0 --allow-route 192.168.50.0/24') },
    ]);
  });
});
