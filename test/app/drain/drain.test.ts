import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { awaitIdle, describeInflow } from '../../../src/app/drain/await-idle.ts';
import { drainNetworks, findLastConnectors, undoDrain } from '../../../src/app/drain/drain.ts';
import { withdrawnBy } from '../../../src/app/lan/withdraw.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { bringUp } from '../../../src/app/networks/up.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import type { Tools } from '../../../src/app/tools.ts';
import type { PeerType } from '../../../src/contract/peer.ts';
import { CommandFailed, NotJoined, Refused, WrongUsage } from '../../../src/core/errors/index.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, dialled, keyPair, peer, underlay } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { one, range, serving, startServing, two } from '../serving.ts';
import type { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const all = [range, one, two];
const patiently = { timeout: 60, down: false };
const refusal = new Refused(404, 'withdrawing routes', 'not found', 'ask an admin');

/** A connector that is up, to which peer 2 sends so many bytes in each second while this says so. */
async function startConnector(rate: number, sends: (simulated: SimulatedHost) => boolean = () => true) {
  const simulated = await startServing(serving());
  await reconcileNetworks(simulated.tools);
  let rxBytes = 0;
  const tools: Tools = {
    ...simulated.tools,
    sleep: async (milliseconds) => {
      simulated.seconds += milliseconds / 1000;
      if (sends(simulated)) rxBytes += (rate * milliseconds) / 1000;
      simulated.updatePeer(2, { rxBytes });
    },
  };
  return { simulated, tools };
}

describe('draining', () => {
  it('withdraws everything, and waits until the traffic ends', async () => {
    const { simulated, tools } = await startConnector(5_000, ({ seconds }) => seconds < 1_010);
    const [report] = await drainNetworks(tools, undefined, patiently);
    expect(report).toMatchObject({ withdrawn: all, idle: true, traffic: null, state: 'up', failure: null });
    expect(simulated.service.withdrawn).toEqual([all]);
    expect(simulated.seconds).toBeGreaterThan(1_011);
    expect((await simulated.state()).drained).toBe(true);
  });

  it('is not undone by a pass of the daemon that comes right after the reply of the control plane', async () => {
    const { simulated, tools } = await startConnector(0);
    const connect: Tools['connect'] = async (...given) => {
      const service = await tools.connect(...given);
      return {
        ...service,
        withdraw: async (...routes) => {
          await service.withdraw(...routes);
          await reconcileNetworks(simulated.tools);
        },
      };
    };
    expect(await drainNetworks({ ...tools, connect }, undefined, patiently)).toMatchObject([{ failure: null }]);
    expect(simulated.service.withdrawn).toEqual([all]);
  });

  it('does not wait for a little traffic', async () => {
    const { simulated, tools } = await startConnector(500);
    expect(await drainNetworks(tools, 'office', patiently)).toMatchObject([{ idle: true }]);
    expect(simulated.seconds).toBeLessThan(1_010);
  });

  it('ends after its timeout, names the peers that still send, and takes the network down with `down`', async () => {
    const { simulated, tools } = await startConnector(5_000);
    const [report] = await drainNetworks(tools, 'cpn0', { timeout: 10, down: true });
    expect(report).toMatchObject({
      idle: false,
      traffic: 'cpn0 still receives 5.0 kB/s, from peer-2',
      state: 'down',
    });
    expect(simulated.actual.link).toBeNull();
    expect(await simulated.state()).toMatchObject({ enabled: false, drained: true });
  });

  it('changes nothing when the control plane refuses', async () => {
    const { simulated, tools } = await startConnector(0);
    const before = await simulated.state();
    simulated.service.onWithdraw = () => {
      throw refusal;
    };
    expect(await drainNetworks(tools, undefined, { timeout: 60, down: true })).toMatchObject([
      { withdrawn: [], idle: null, state: 'up', failure: refusal },
    ]);
    expect(await simulated.state()).toEqual(before);
  });

  it('needs a token', async () => {
    const { membership, ...state } = serving();
    const simulated = await startServing({ ...state, membership: { ...membership, accessToken: null } });
    const reports = await drainNetworks(simulated.tools, undefined, patiently);
    expect(reports).toMatchObject([{ failure: { name: 'CannotWithdraw' } }]);
    expect((await simulated.state()).drained).toBe(false);
  });

  it('is for connectors', async () => {
    const { tools } = await startServing(serving({}, 'origin'));
    await expect(drainNetworks(tools, undefined, patiently)).rejects.toBeInstanceOf(WrongUsage);
    await tools.store.lock(() => tools.store.forget('cpn0', []));
    await expect(drainNetworks(tools, undefined, patiently)).rejects.toBeInstanceOf(NotJoined);
  });
});

describe('a drained connector', () => {
  async function startDrained() {
    const connector = await startConnector(0);
    await drainNetworks(connector.tools, undefined, patiently);
    return connector;
  }

  it('shows that it is, and its routes as standby', async () => {
    const { tools } = await startDrained();
    const [status] = await readStatus(tools);
    expect(status?.routes.map(({ state }) => state)).toEqual(['standby', 'standby']);
    expect(status?.warnings).toEqual(['out of service since "cpn drain"; "cpn drain cpn0 --undo" puts it back']);
  });

  it('is withdrawn again by a pass when the control plane forgot', async () => {
    const { simulated, tools } = await startDrained();
    simulated.service.withdrawn.push([]);
    await reconcileNetworks(tools);
    expect(simulated.service.withdrawn.at(-1)).toEqual(all);
  });

  it('goes back into service with --undo, but for routes whose LAN is dead', async () => {
    const { simulated, tools } = await startDrained();
    await tools.store.writeNotes('cpn0', { ...(await tools.store.readNotes('cpn0')), dead: [two] });
    const reasons = [`${two} (no host there answers the probes)`];
    expect(await undoDrain(tools, undefined)).toMatchObject([
      { withdrawn: [two], reasons, state: 'up', failure: null },
    ]);
    expect(simulated.service.withdrawn).toEqual([all, [two]]);
    expect((await simulated.state()).drained).toBe(false);
  });

  it('is undone with --undo over the default route when the specific route is gone; gives the reason without either', async () => {
    const { simulated, tools } = await startDrained();
    simulated.sourceAddressTo = () => address('203.0.113.22');
    const gone = 'there is no interface eth7 any more';
    await tools.store.amendNotes('cpn0', { ways: { [one]: { isOwn: true, links: ['eth7'], gone } } });
    const around = (uplinks: string[]) => {
      simulated.actual = { ...simulated.actual, underlay: { ...underlay, reached: [], uplinks } };
    };
    around([]);
    const reasons = [`${one} (${gone})`];
    expect(await undoDrain(tools, undefined)).toMatchObject([{ withdrawn: [one], reasons }]);
    around(['eth0']);
    expect(await undoDrain(tools, undefined)).toMatchObject([{ withdrawn: [], reasons: [] }]);
    expect(simulated.service.withdrawn.at(-1)).toEqual([]);
  });

  it('never reports with --undo a way that is back and only settles in the daemon, and so gets its place back', async () => {
    const { simulated, tools } = await startDrained();
    simulated.sourceAddressTo = () => address('203.0.113.22');
    const gone = 'eth1 is down, or has no carrier';
    await tools.store.amendNotes('cpn0', { ways: { [one]: { isOwn: true, links: ['eth1'], gone } } });
    const reached = [one, two].map((prefix) => ({ prefix, link: 'eth1' }));
    simulated.actual = { ...simulated.actual, underlay: { ...underlay, reached } };
    expect(await undoDrain(tools, undefined)).toMatchObject([{ withdrawn: [], reasons: [], failure: null }]);
    expect(simulated.service.withdrawn).toEqual([all, []]);
  });

  it('serves with --undo, for a pass of the daemon in between, no fewer routes than at the end', async () => {
    const { simulated, tools } = await startDrained();
    simulated.sourceAddressTo = () => address('203.0.113.22');
    const gone = 'eth1 is down, or has no carrier';
    await tools.store.amendNotes('cpn0', { ways: { [one]: { isOwn: true, links: ['eth1'], gone } } });
    const reached = [one, two].map((prefix) => ({ prefix, link: 'eth1' }));
    simulated.actual = { ...simulated.actual, underlay: { ...underlay, reached } };
    const reportable: unknown[] = [];
    const lock: Tools['store']['lock'] = async (work) => {
      const result = await tools.store.lock(work);
      reportable.push(withdrawnBy(await simulated.state(), await tools.store.readNotes('cpn0')));
      return result;
    };
    await undoDrain({ ...tools, store: { ...tools.store, lock } }, undefined);
    expect(reportable[0]).toEqual([]);
  });

  it('is undone by a later pass when the control plane refuses the --undo', async () => {
    const { simulated, tools } = await startDrained();
    simulated.service.onWithdraw = () => {
      throw refusal;
    };
    expect(await undoDrain(tools, undefined)).toMatchObject([{ failure: refusal }]);
    simulated.service.onWithdraw = () => {};
    await reconcileNetworks(tools);
    expect(simulated.service.withdrawn).toEqual([all, []]);
  });

  it('of a network that is down is undone by `cpn up`, without a request, and the next pass', async () => {
    const { simulated, tools } = await startConnector(0);
    await drainNetworks(tools, undefined, { timeout: 60, down: true });
    await expect(undoDrain(tools, undefined)).rejects.toThrow('"cpn up cpn0" brings it up');
    const asked = simulated.service.mapRequests.length;
    await bringUp(tools);
    expect(await simulated.state()).toMatchObject({ enabled: true, drained: false });
    expect([simulated.service.mapRequests.length, simulated.service.withdrawn]).toEqual([asked, [all]]);
    await reconcileNetworks(tools);
    expect(simulated.service.withdrawn).toEqual([all, []]);
  });
});

describe('several networks', () => {
  /** A connector that is up as cpn0, and another network of this host as cpn1; each has its traffic. */
  async function startTwo(changes: Partial<Joined> = {}, type: PeerType = 'connector') {
    const { simulated, tools } = await startConnector(0);
    await tools.store.write({ ...serving(changes, type), interface: 'cpn1' });
    const { device, observe } = tools.host;
    tools.host.observe = async (wanted) => {
      // The simulated host has one interface.
      if (wanted.link === 'cpn1') throw new CommandFailed('ip link show cpn1', 1, 'no');
      return observe(wanted);
    };
    let rxBytes = 0;
    tools.host.device = async (link) => {
      const actual = await device(link);
      rxBytes += 10_000;
      if (actual === null || link === 'cpn0') return actual;
      return { ...actual, peers: actual.peers.map((each) => ({ ...each, rxBytes })) };
    };
    return { simulated, tools };
  }

  it('each have their own traffic', async () => {
    const { tools } = await startTwo();
    expect(await drainNetworks(tools, undefined, { timeout: 5, down: false })).toMatchObject([
      { interface: 'cpn0', idle: true, traffic: null },
      { interface: 'cpn1', idle: false, traffic: expect.stringMatching(/^cpn1 still receives/) },
    ]);
  });

  it('are drained where another one is refused', async () => {
    const { simulated, tools } = await startTwo();
    let count = 0;
    simulated.service.onWithdraw = () => {
      count += 1;
      if (count === 1) throw refusal;
    };
    expect(await drainNetworks(tools, undefined, { timeout: 5, down: false })).toMatchObject([
      { interface: 'cpn0', failure: refusal },
      { interface: 'cpn1', failure: null, withdrawn: all },
    ]);
    const states = (await tools.store.list()).states;
    expect(states.map(({ drained }) => drained)).toEqual([false, true]);
  });

  it('are drained as far as this host is their connector', async () => {
    const { tools } = await startTwo({}, 'origin');
    expect(await drainNetworks(tools, undefined, patiently)).toMatchObject([{ interface: 'cpn0', failure: null }]);
    await expect(drainNetworks(tools, 'cpn1', patiently)).rejects.toThrow('cpn1 is joined as origin');
  });

  it('are all left as they are by --undo if one of them is down', async () => {
    const { simulated, tools } = await startTwo({ enabled: false, drained: true });
    await tools.store.write({ ...(await simulated.state()), drained: true });
    await expect(undoDrain(tools, undefined)).rejects.toThrow('"cpn up cpn1"');
    expect((await simulated.state()).drained).toBe(true);
  });

  it('are reported with one that cannot be read', async () => {
    const { tools } = await startConnector(0);
    await writeFile(join(dirname(tools.store.formerPath), 'cpn1.json'), '{', { mode: 0o600 });
    for (const reports of [await drainNetworks(tools, undefined, patiently), await undoDrain(tools, undefined)]) {
      expect(reports.map(({ interface: link, failure }) => [link, failure?.name ?? null])).toEqual([
        ['cpn0', null],
        ['cpn1', 'UnreadableFile'],
      ]);
    }
  });
});

describe('a drain that is repeated, refused or undone without success', () => {
  it('stays when the control plane refuses it the second time', async () => {
    const { simulated, tools } = await startConnector(0);
    await drainNetworks(tools, undefined, patiently);
    simulated.service.onWithdraw = () => {
      throw refusal;
    };
    expect(await drainNetworks(tools, undefined, patiently)).toMatchObject([{ failure: refusal }]);
    expect((await simulated.state()).drained).toBe(true);
  });

  it('is refused for a host that the map does not list as a connector', async () => {
    const state = serving();
    const { map } = state.membership;
    const peers = map.peers.map((each) => (each.id === 1 ? { ...each, type: 'origin' as const } : each));
    const membership = { ...state.membership, map: { ...map, peers } };
    const simulated = await startServing({ ...state, membership });
    expect(await drainNetworks(simulated.tools, undefined, patiently)).toMatchObject([
      { failure: { name: 'CannotWithdraw', message: expect.stringContaining('no longer lists') } },
    ]);
    expect([(await simulated.state()).drained, simulated.service.withdrawn]).toEqual([false, []]);
  });

  it('reads the map that has the routes out of service, and none after a refusal', async () => {
    const { simulated, tools } = await startConnector(0);
    await drainNetworks(tools, undefined, patiently);
    expect((await simulated.state()).membership.map.peers[0]?.withdrawn).toEqual(all);
    simulated.service.onWithdraw = () => {
      throw refusal;
    };
    const asked = simulated.service.mapRequests.length;
    const reads = simulated.observations;
    await undoDrain(tools, undefined);
    expect([simulated.service.mapRequests.length - asked <= 1, simulated.observations - reads]).toEqual([true, 0]);
  });

  it('gives packet rules that do not load as the reason, for each route', async () => {
    const { simulated, tools } = await startConnector(0);
    simulated.refusesStep = (step) => step.do === 'set-firewall';
    simulated.actual = { ...simulated.actual, firewall: null };
    const [report] = await undoDrain(tools, undefined);
    expect(report?.reasons).toEqual(all.map((route) => `${route} (the packet rules do not load)`));
  });

  it('keeps the recorded paths to LANs of a host that cannot be observed', async () => {
    const { tools } = await startConnector(0);
    await drainNetworks(tools, undefined, patiently);
    const ways = { [one]: { isOwn: true, links: ['eth7'], gone: 'eth7 is down' } };
    await tools.store.amendNotes('cpn0', { ways });
    tools.host.observe = () => Promise.reject(new CommandFailed('ip link show cpn0', 1, 'no'));
    const [report] = await undoDrain(tools, undefined);
    expect(report?.reasons).toEqual([`${one} (eth7 is down)`]);
  });
});

describe('the wait for other paths', () => {
  it('ends after three quiet seconds in a row', async () => {
    const begun = 1_000;
    const { simulated, tools } = await startConnector(5_000, ({ seconds }) => (seconds - begun) % 3 === 0);
    await drainNetworks(tools, undefined, { timeout: 12, down: false });
    expect(simulated.seconds - begun).toBe(12);
  });

  it('measures the rate of each second', async () => {
    const { simulated, tools } = await startConnector(5_000, ({ seconds }) => seconds <= 1_005);
    await drainNetworks(tools, undefined, { timeout: 60, down: false });
    expect(simulated.seconds).toBe(1_008);
  });

  it('ends with the interface', async () => {
    const { simulated, tools } = await startConnector(5_000);
    const { sleep } = tools;
    const during = async (milliseconds: number) => {
      await sleep(milliseconds);
      simulated.tools.host.device = async () => null;
    };
    expect(await awaitIdle({ ...tools, sleep: during }, serving(), 60)).toEqual([]);
    expect(simulated.seconds).toBe(1_001);
  });

  it('names three peers, and counts the others', () => {
    const inflow = [2, 3, 4, 5].map((number) => ({ publicKey: keyPair(number).publicKey, rate: 1_000 }));
    const state = joinedTo(
      mapAt(
        '"1"',
        [2, 3, 4, 5].map((number) => peer(number)),
      ),
    );
    expect(describeInflow(inflow.slice(0, 3), state)).toBe('cpn0 still receives 3.0 kB/s, from peer-2, peer-3, peer-4');
    expect(describeInflow(inflow, state)).toBe('cpn0 still receives 4.0 kB/s, from peer-2, peer-3, peer-4 and 1 more');
  });
});

it('only a connector that is taken down is the last one for the devices that dial it', async () => {
  const state = serving();
  const { map } = state.membership;
  const phone = peer(3, { name: 'phone', via: { connector: 1 } });
  const spare = peer(4, { type: 'connector', endpoint: dialled(4) });
  const listed = { ...map, peers: [...map.peers, phone, spare] };
  const simulated = await startServing({ ...state, membership: { ...state.membership, map: listed } });
  simulated.service.mapReplies = [answerWith({ ...listed, revision: '"2"' })];
  expect(await findLastConnectors(simulated.tools, undefined, false)).toEqual([]);
  expect(simulated.service.mapRequests).toEqual([]);
  expect(await findLastConnectors(simulated.tools, undefined, true)).toMatchObject([{ dialling: ['phone'] }]);
});
