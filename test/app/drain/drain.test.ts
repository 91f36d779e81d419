import { describe, expect, it } from 'vitest';
import { drainNetworks, undoDrain } from '../../../src/app/drain/drain.ts';
import { withdrawnBy } from '../../../src/app/lan/withdraw.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { bringUp } from '../../../src/app/networks/up.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { NotJoined, Refused, WrongUsage } from '../../../src/core/errors/index.ts';
import { address, underlay } from '../../core/samples.ts';
import { one, range, serving, startServing, two } from '../serving.ts';
import type { SimulatedHost } from '../simulated-host.ts';

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
