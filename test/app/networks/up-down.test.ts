import { describe, expect, it } from 'vitest';
import { takeDown } from '../../../src/app/networks/down.ts';
import { planNetworks, reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { bringUp } from '../../../src/app/networks/up.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import type { OpenPort } from '../../../src/core/host-state/receipt.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { type: 'connector', endpoint: dialled(2) }), peer(3)]);
const port: OpenPort = { by: 'ufw', port: 51_820, zone: null, permanent: true };
const failed = [{ peer: 2, back: false }];
const at = '2026-11-26T00:00:00.000Z';

async function start(changes: Partial<Joined> = {}) {
  const simulated = await SimulatedHost.with(joinedTo(map, changes));
  const warnings: string[] = [];
  simulated.tools.warn = (text) => void warnings.push(text);
  simulated.service.mapReplies = [answerWith(map)];
  simulated.ports = [{ at: port, is: 'closed' }];
  return { simulated, tools: simulated.tools, warnings };
}

describe('cpn up', () => {
  it('forgets the peers that failed before the network was down, and keeps those that fail now', async () => {
    for (const enabled of [false, true]) {
      const { simulated, tools } = await start({ enabled, failed });
      await bringUp(tools);
      expect((await simulated.state()).failed).toEqual(enabled ? failed : []);
    }
  });

  it('opens the port of a network that was down, and not again of one that is up', async () => {
    const { simulated, tools } = await start({
      enabled: false,
      options: { ...options, listenPort: 51_820, openFirewall: true },
    });
    const [first] = await bringUp(tools);
    expect(first?.changes).toContainEqual(expect.objectContaining({ kind: 'firewall', target: 'ufw' }));
    expect((await simulated.state()).openPorts).toEqual([port]);
    simulated.steps.length = 0;
    const [second] = await bringUp(tools);
    expect([second?.changes, simulated.steps]).toEqual([[], []]);
  });

  it('leaves a deleted network down unless it is named; then the next statement is the first again', async () => {
    const deleted = { enabled: false, deletion: { at, resumes: true } };
    const { simulated, tools, warnings } = await start(deleted);
    await tools.store.amendNotes('cpn0', { held: { since: 7, isDeletion: true } });
    expect(await bringUp(tools)).toMatchObject([{ interface: 'cpn0', failure: { name: 'LeftDown' } }]);
    expect([(await simulated.state()).enabled, simulated.steps]).toEqual([false, []]);
    expect((await tools.store.readNotes('cpn0')).held).not.toBeNull();
    expect(await bringUp(tools, 'office')).toMatchObject([{ failure: null }]);
    const { enabled, deletion } = await simulated.state();
    expect([enabled, deletion, (await tools.store.readNotes('cpn0')).held]).toEqual([true, undefined, null]);
    expect(warnings.join()).toContain('deleted');
  });

  it('puts a drained connector back into service, and says when others learn of that', async () => {
    const { simulated, tools, warnings } = await start({ drained: true });
    await bringUp(tools);
    expect((await simulated.state()).drained).toBe(false);
    expect(warnings.join()).toContain('cpn0 is in service again once the daemon, or "cpn reconcile", reports it');
  });
});

describe('cpn down', () => {
  it('removes the tunnel, keeps the state, and is down on disk before its first step', async () => {
    const { simulated, tools } = await start();
    await passNetwork(tools, 'cpn0', noUpdate, { withinMs: 20_000 });
    const { apply } = tools.host;
    const seen: boolean[] = [];
    tools.host.apply = async (step) => {
      seen.push((await simulated.state()).enabled);
      await apply(step);
    };
    expect(await takeDown(tools)).toEqual(['cpn0']);
    expect(new Set(seen)).toEqual(new Set([false]));
    expect(simulated.actual).toMatchObject({ link: null, device: null, firewall: null });
    expect(await simulated.state()).toMatchObject({ enabled: false, receipt: [], membership: { peer: { id: 1 } } });
  });

  it.each([
    ['plan', planNetworks],
    ['reconcile', reconcileNetworks],
  ])('is named by %s, which changes nothing then', async (_, perform) => {
    const { simulated, tools, warnings } = await start({ enabled: false });
    expect(await perform(tools)).toMatchObject([{ changes: [], failure: null }]);
    expect(warnings).toContain('cpn0 was taken down; "cpn up cpn0" brings it up');
    expect(simulated.steps).toEqual([]);
  });

  it('of a deleted network keeps it down when its control plane has it again', async () => {
    const { simulated, tools } = await start({ enabled: false, deletion: { at, resumes: true } });
    await takeDown(tools);
    expect((await simulated.state()).deletion).toEqual({ at, resumes: false });
    await passNetwork(tools, 'cpn0', { ...noUpdate, isBack: true }, { withinMs: 20_000 });
    const { enabled, deletion } = await simulated.state();
    expect([enabled, deletion]).toEqual([false, undefined]);
  });
});
