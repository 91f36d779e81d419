import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { leaveNetworks, selectLeaving, verifyLeft } from '../../../src/app/leave/leave.ts';
import { takeDown } from '../../../src/app/networks/down.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import { NotConverged, NotJoined, Unreachable, WrongUsage } from '../../../src/core/errors/index.ts';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import { tunnelRules } from '../../../src/core/routing/tunnel-rules.ts';
import { bare, dialled, peer, underlay } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const identity = makeIdentity(new Uint8Array(32).fill(7));
const away = () => {
  throw new Unreachable('https://203.0.113.99', 'no', { delivered: false, heard: false, retryAfterMs: null });
};

/** A host that is up as cpn0, and has joined `others` too. */
async function start(others: readonly string[] = []) {
  const simulated = await SimulatedHost.with(joinedTo(map, { identity }));
  const warnings: string[] = [];
  simulated.tools.warn = (text) => void warnings.push(text);
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  for (const link of others) await simulated.tools.store.write(joinedTo(map, { interface: link }));
  const { tools, service } = simulated;
  const stateOf = (link: string) => join(dirname(tools.store.formerPath), `${link}.json`);
  return { simulated, tools, service, warnings, stateOf };
}

describe('leaving', () => {
  it('removes the peer from the network before the tunnel is removed', async () => {
    const { simulated, tools, service } = await start();
    const seen: unknown[] = [];
    service.onRemovePeer = () => seen.push(simulated.actual.link?.name) > 0;
    await leaveNetworks(tools);
    expect([seen, simulated.actual.link]).toEqual([['cpn0'], null]);
  });

  it('of a host whose copy stays removes no peer, keeps no identity, and warns of nothing', async () => {
    const { simulated, tools, warnings } = await start();
    expect(await leaveNetworks(tools, ['cpn0'], true)).toEqual([{ interface: 'cpn0', removed: false, former: false }]);
    expect([(await tools.store.readFormer()).memberships, warnings, simulated.actual.link]).toEqual([[], [], null]);
    expect(await tools.store.read('cpn0')).toBeNull();
  });

  it('keeps the network down on disk when it ends between the cleanup and the removal of the state', async () => {
    const { tools, service } = await start();
    service.onRemovePeer = () => true;
    const store = { ...tools.store, forget: away };
    await expect(leaveNetworks({ ...tools, store })).rejects.toBeInstanceOf(Unreachable);
    expect(await tools.store.read('cpn0')).toMatchObject({ enabled: false, receipt: [] });
  });

  it('does not read the damaged state of another network', async () => {
    const { tools, service, stateOf, warnings } = await start(['cpn1']);
    await writeFile(stateOf('cpn1'), '{', { mode: 0o600 });
    service.onRemovePeer = () => true;
    expect(await leaveNetworks(tools, ['cpn0'])).toMatchObject([{ interface: 'cpn0', removed: true }]);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['leaving', (tools: SimulatedHost['tools']) => leaveNetworks(tools)],
    ['cpn down', (tools: SimulatedHost['tools']) => takeDown(tools, undefined, true)],
  ])('%s processes the readable networks, fails with the first damaged state, and warns of others', async (_, work) => {
    const { tools, service, stateOf, warnings } = await start(['cpn1', 'cpn2', 'cpn3']);
    for (const link of ['cpn1', 'cpn3']) await writeFile(stateOf(link), '{', { mode: 0o600 });
    service.onRemovePeer = () => true;
    await expect(work(tools)).rejects.toThrow('cpn1.json is damaged');
    expect(warnings).toEqual([expect.stringContaining('cpn3.json is damaged')]);
    expect((await tools.store.list()).states.filter(({ enabled }) => enabled)).toEqual([]);
  });
});

describe('what is to be left', () => {
  /** A host that left the network office as cpn0, and has joined `others`. */
  async function afterLeaving(others: readonly string[]) {
    const { tools, service } = await start(others);
    service.onRemovePeer = away;
    await leaveNetworks(tools, ['cpn0']);
    return tools;
  }

  it('is nothing for a network that was left already', async () => {
    const tools = await afterLeaving([]);
    for (const name of ['cpn0', 'office', '7', undefined])
      expect(await selectLeaving(tools, name, false)).toEqual({ states: [], unreadable: [] });
  });

  it('is refused for a name of neither a joined nor a left network', async () => {
    await expect(selectLeaving(await afterLeaving([]), 'lab', false)).rejects.toBeInstanceOf(NotJoined);
  });

  it('is refused without a name if several are joined, whatever was left before', async () => {
    const tools = await afterLeaving(['cpn1', 'cpn2']);
    await expect(selectLeaving(tools, undefined, false)).rejects.toBeInstanceOf(WrongUsage);
    expect((await selectLeaving(tools, undefined, true)).states).toHaveLength(2);
  });
});

describe('the verification of a left network', () => {
  it('observes packet rules, hosts file and policy rules; an empty hosts file is none of its remains', async () => {
    const { simulated, tools } = await start();
    await tools.store.forget('cpn0', []);
    simulated.actual = { ...bare, hosts: { block: null, trouble: null } };
    const asked: unknown[] = [];
    const { observe } = tools.host;
    tools.host.observe = (wanted) => {
      asked.push(wanted);
      return observe(wanted);
    };
    expect(await verifyLeft(tools, 'cpn0')).toContain('policy rule of cpn');
    expect(asked).toMatchObject([{ link: 'cpn0', firewall: true, hosts: true }]);
  });

  it('lists its state and its policy rules together', async () => {
    const { simulated, tools } = await start();
    const rules = tunnelRules({ underlay, api: [] }, false);
    simulated.actual = { ...bare, rules } satisfies Actual;
    const failure = await verifyLeft(tools, 'cpn0').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(NotConverged);
    for (const what of ['state of cpn0', 'rule ']) expect((failure as NotConverged).message).toContain(what);
  });
});
