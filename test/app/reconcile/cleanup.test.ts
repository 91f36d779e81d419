import { describe, expect, it } from 'vitest';
import { cleanUp, deleteState } from '../../../src/app/reconcile/cleanup.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { routeProtocol, tunnelTable } from '../../../src/core/host-state/marks.ts';
import type { OwnedResource } from '../../../src/core/host-state/receipt.ts';
import { forwardingKey, sourceFilterKey, sourceRouteKey } from '../../../src/core/host-state/sysctl-keys.ts';
import { tunnelRules } from '../../../src/core/routing/tunnel-rules.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { bare, dialled, keyPair, peer, prefix, underlay } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { serving } from '../serving.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const options = { withinMs: 20_000 };
const forwarding: OwnedResource = { made: 'sysctl', key: forwardingKey('eth1'), before: '0', after: '1' };
const other: OwnedResource = { made: 'sysctl', key: sourceRouteKey, before: '1', after: '0' };
const folder = (path: string): OwnedResource => ({ made: 'folder', path });

async function start(state: Joined = joinedTo(map)) {
  const simulated = await SimulatedHost.with(state);
  const warnings: string[] = [];
  simulated.tools.warn = (text) => void warnings.push(text);
  return { simulated, tools: simulated.tools, warnings };
}

describe('the cleanup of a network', () => {
  it('removes what a pass made, the last evaluation, and why packet rules did not load', async () => {
    const { simulated, tools } = await start();
    await passNetwork(tools, 'cpn0', noUpdate, options);
    await tools.store.amendNotes('cpn0', { unloaded: 'no' });
    expect(tools.evaluations.find('cpn0')).toBeDefined();
    await cleanUp(tools, await simulated.state());
    expect(tools.evaluations.find('cpn0')).toBeUndefined();
    expect(simulated.actual).toMatchObject({ link: null, device: null, firewall: null });
    expect([(await tools.store.readNotes('cpn0')).unloaded, (await simulated.state()).receipt]).toEqual([null, []]);
  });

  it('leaves an interface of its name that another program made', async () => {
    const { simulated, tools, warnings } = await start();
    await passNetwork(tools, 'cpn0', noUpdate, options);
    const { link, device } = simulated.actual;
    const foreign = {
      link: link && { ...link, alias: 'of another program' },
      device: device && { ...device, publicKey: keyPair(77).publicKey },
    };
    simulated.actual = { ...simulated.actual, ...foreign };
    await cleanUp(tools, await simulated.state());
    expect(simulated.actual.link).toEqual(foreign.link);
    expect(warnings).toEqual([expect.stringContaining('it is left as it is')]);
  });

  it('removes the rules of a full tunnel that no receipt has, as wg-quick made them', async () => {
    const { simulated, tools } = await start();
    await passNetwork(tools, 'cpn0', noUpdate, options);
    const through = { prefix: prefix('0.0.0.0/0'), table: tunnelTable, protocol: routeProtocol, metric: null };
    const rules = tunnelRules({ underlay, api: [] }, false);
    simulated.actual = { ...simulated.actual, rules, routes: [...simulated.actual.routes, through] };
    await cleanUp(tools, await simulated.state());
    expect(simulated.actual.rules).toEqual([]);
  });
});

describe('forwarding that a connector made', () => {
  const connector = (changes: Partial<Joined> = {}) =>
    serving({ receipt: [folder('/x'), forwarding, other], ...changes });
  const sysctls = { [forwardingKey('eth1')]: '1', [sourceRouteKey]: '0' };

  it('ends with the last connector, though its own state is still up on disk', async () => {
    const { simulated, tools } = await start(connector());
    simulated.actual = { ...bare, sysctls };
    await cleanUp(tools, { ...connector(), enabled: false });
    expect(simulated.actual.sysctls).toEqual({ [forwardingKey('eth1')]: '0', [sourceRouteKey]: '1' });
    expect((await simulated.state()).receipt).toEqual([folder('/x')]);
  });

  /** The other network of this host, another connector, cannot be observed here. */
  async function withSuccessor(receipt: readonly OwnedResource[]) {
    const started = await start(connector());
    const { simulated, tools } = started;
    await tools.store.write({ ...serving({ receipt }), interface: 'cpn1' });
    simulated.actual = { ...bare, sysctls };
    const { observe } = tools.host;
    tools.host.observe = async (wanted) => {
      if (wanted.link === 'cpn1') throw new CommandFailed('ip link show cpn1', 1, 'no');
      return observe(wanted);
    };
    await cleanUp(tools, { ...connector(), enabled: false });
    return { ...started, receipt: (await tools.store.read('cpn1'))?.receipt };
  }

  it('belongs to another connector of this host, before what that made itself; the rest ends', async () => {
    const own: OwnedResource = { made: 'sysctl', key: sourceFilterKey('cpn1'), before: '1', after: '2' };
    const { simulated, receipt, warnings } = await withSuccessor([own]);
    expect(receipt).toEqual([forwarding, own]);
    expect(simulated.actual.sysctls).toEqual({ [forwardingKey('eth1')]: '1', [sourceRouteKey]: '1' });
    // A later pass of that network tries again.
    expect(warnings).toEqual([expect.stringContaining('ip link show cpn1')]);
  });

  it('is in its receipt once', async () => {
    expect((await withSuccessor([forwarding])).receipt).toEqual([forwarding]);
  });
});

it('the folders of a network that is deleted belong to another one, and are removed with the last', async () => {
  const { simulated, tools } = await start();
  const made = await tools.store.prepare();
  await tools.store.write({ ...(await simulated.state()), receipt: made.map(folder) });
  await tools.store.write(joinedTo(map, { interface: 'cpn1' }));
  await deleteState(tools, await simulated.state());
  expect(await tools.store.read('cpn0')).toBeNull();
  expect((await tools.store.read('cpn1'))?.receipt).toEqual(made.map(folder));
});

it('the first step finds its receipt on disk, with the map that is in use until a newer one is confirmed', async () => {
  const { simulated, tools } = await start();
  await passNetwork(tools, 'cpn0', noUpdate, options);
  simulated.updatePeer(2, { latestHandshake: Math.floor(tools.now().getTime() / 1000) });
  simulated.service.mapReplies = [answerWith(map)];
  await tools.store.write({ ...(await simulated.state()), receipt: [] });
  simulated.actual = { ...simulated.actual, firewall: null };
  const { apply } = tools.host;
  const seen: unknown[] = [];
  tools.host.apply = async (step) => {
    const { receipt, membership } = await simulated.state();
    seen.push([receipt.map(({ made }) => made), membership.map.revision]);
    await apply(step);
  };
  const newer = { ...map, revision: '"2"', peers: [...map.peers, peer(3)], routes: [prefix('192.168.60.0/24')] };
  await passNetwork(tools, 'cpn0', { map: newer, resolved: null }, options);
  expect(seen[0]).toEqual([['firewall'], '"1"']);
  expect((await simulated.state()).membership.map.revision).toBe('"2"');
});
