import { describe, expect, it } from 'vitest';
import { withdrawnBy } from '../../../../src/app/lan/withdraw.ts';
import { findLanProblems } from '../../../../src/app/problems/find-problems.ts';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { LanRouteListener } from '../../../../src/app/run/listeners/lan-route-listener.ts';
import type { Peer } from '../../../../src/core/map/model.ts';
import type { Prefix } from '../../../../src/core/net/cidr.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { address, dialled, peer, underlay } from '../../../core/samples.ts';
import { mapWithout, one, range, serving, two } from '../../serving.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const lan = [one, two].map((prefix, at) => ({ prefix, link: `eth${at + 1}` }));

/** A connector of two routes with a LAN each, and passes of its daemon. */
async function watchOver(state: Joined = serving(), reached = lan) {
  const simulated = await SimulatedHost.with(state);
  simulated.sourceAddressTo = () => address('203.0.113.22');
  const see = (now: typeof lan) => {
    simulated.actual = { ...simulated.actual, underlay: { ...underlay, reached: now } };
  };
  see(reached);
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
  const triggers: number[] = [];
  let dropped: ReadonlyMap<Prefix, string> = new Map();
  const watch = new LanRouteListener(
    simulated.tools,
    'cpn0',
    (inMs) => void triggers.push(inMs),
    () => dropped,
  );
  const drop = (...routes: readonly Prefix[]) => {
    dropped = new Map(routes.map((route) => [route, 'nft table ip filter drops what this host forwards there']));
  };
  /** One more pass; returns what is to be out of service after it. */
  const pass = async (withdrawn: readonly Prefix[] = [], others: readonly Peer[] = []) => {
    const { membership } = state;
    const map = mapWithout(withdrawn);
    const now = { ...state, membership: { ...membership, map: { ...map, peers: [...map.peers, ...others] } } };
    await watch.onPass(passOf(await evaluateNetwork(simulated.tools, now)));
    return withdrawnBy(now, await simulated.tools.store.readNotes('cpn0'));
  };
  const logged = () =>
    simulated.logged.filter(({ message }) => message.startsWith('the path')).map((each) => each.message);
  return { simulated, see, watch, triggers, pass, logged, drop };
}

describe('a connector', () => {
  it('withdraws the route whose path is gone, logs it once, and serves it again once the path has settled', async () => {
    const { simulated, see, triggers, pass, logged } = await watchOver();
    expect(await pass()).toEqual([]);
    see(lan.slice(1));
    expect(await pass()).toEqual([one]);
    expect(await pass([one])).toEqual([one]);
    expect(logged()).toEqual(['the path to the LAN behind a route is gone']);
    see(lan);
    expect(await pass([one])).toEqual([one]);
    expect(triggers).toEqual([5_000]);
    simulated.seconds += 5;
    expect(await pass([one])).toEqual([]);
    expect(logged().at(-1)).toBe('the path to the LAN behind a route is back');
  });

  it('leaves a route whose packets another program drops to another connector, and takes it back without one', async () => {
    const { simulated, pass, drop } = await watchOver();
    const other = peer(3, { type: 'connector', endpoint: dialled(3) });
    await pass([], [other]);
    drop(one);
    expect(await pass()).toEqual([]);
    expect(await pass([], [other])).toEqual([one]);
    expect(await pass([one], [other])).toEqual([one]);
    expect(findLanProblems(serving(), await simulated.tools.store.readNotes('cpn0'))[0]?.text).toContain(
      '(nft table ip filter drops what this host forwards there)',
    );
    const without = { ...other, routes: [two], withdrawn: [one] };
    expect(await pass([one], [without])).toEqual([one]);
    simulated.seconds += 5;
    expect(await pass([one], [without])).toEqual([]);
    expect(await pass([], [without])).toEqual([]);
  });

  it('treats changes of the interfaces of its LANs as urgent, and of those that are gone', async () => {
    const { see, watch, pass } = await watchOver();
    const event = { kind: 'link', removed: false } as const;
    await pass();
    see([]);
    await pass();
    expect(['eth1', 'eth2', 'eth9'].map((link) => watch.onEvent({ ...event, link }))).toEqual([true, true, false]);
  });

  it('withdraws nothing while it does not reach the control plane', async () => {
    const { simulated, see, pass } = await watchOver();
    await pass();
    simulated.sourceAddressTo = () => null;
    see([]);
    expect(await pass()).toEqual([]);
  });

  it('restores after its start what was out of service, but not what was for another reason', async () => {
    const lost = await watchOver(serving(), lan.slice(1));
    expect(await lost.pass([one])).toEqual([one]);
    const drained = await watchOver(serving(), []);
    expect(await drained.pass([range, one, two])).toEqual([]);
  });

  it('shows a route without a path, and whether that is reported', async () => {
    const { simulated, see, pass } = await watchOver();
    await pass();
    see(lan.slice(1));
    await pass();
    const notes = await simulated.tools.store.readNotes('cpn0');
    const what = `this host has no path to the LAN behind ${one} (the route there by eth1 is gone); `;
    expect(findLanProblems(serving(), notes).map(({ text }) => text)).toEqual([
      `${what}the control plane still has the route in service here, and others send to it`,
    ]);
  });
});
