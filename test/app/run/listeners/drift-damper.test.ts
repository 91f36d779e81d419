import { describe, expect, it } from 'vitest';
import { DriftDamper } from '../../../../src/app/run/listeners/drift-damper.ts';
import type { Actual } from '../../../../src/core/host-state/actual.ts';
import { added, type Change, removed } from '../../../../src/core/reconcile/change.ts';
import { desireFor, dialled, network, peer, underlay, usualConstraints } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const state = joinedTo(mapAt('"1"', [peer(2, { endpoint: dialled(2) })]));
const route = [removed('route', '192.168.50.0/24', 'cpn0', 'gone')];

/** What every pass of a test works towards. */
const aimed = {
  desired: desireFor(peer(1), network([peer(1)])),
  actual: { rules: [], underlay } as unknown as Actual,
};
const planned = (changes: readonly Change[]) => ({ ...aimed, changes });

const notes = (simulated: SimulatedHost) => simulated.tools.store.readNotes('cpn0');

describe('drift that keeps coming back', () => {
  it('is logged once, with the process that may cause it, and stays in the notes until it ends', async () => {
    const simulated = await SimulatedHost.with(state);
    const watch = new DriftDamper(simulated.tools, 'cpn0');
    for (let repair = 0; repair < 6; repair += 1) {
      simulated.seconds += watch.pauseBefore(planned(route));
      await watch.onPass(passOf(aimed, route));
    }
    const warnings = simulated.logged.filter(({ level }) => level === 'warn');
    expect(warnings).toEqual([
      {
        level: 'warn',
        message: 'drift keeps coming back',
        facts: { interface: 'cpn0', targets: ['route 192.168.50.0/24'], suspects: ['NetworkManager (pid 7)'] },
      },
    ]);
    expect((await notes(simulated)).troubles).toEqual([expect.stringContaining('perhaps by NetworkManager (pid 7)')]);
    simulated.seconds += 600;
    await watch.onPass(passOf(aimed));
    expect((await notes(simulated)).troubles).toEqual([]);
  });

  it('counts too when it is back before the pass verified the repair', async () => {
    const simulated = await SimulatedHost.with(state);
    const watch = new DriftDamper(simulated.tools, 'cpn0');
    for (let repair = 0; repair < 3; repair += 1) {
      expect(watch.pauseBefore(planned(route))).toBe(0);
      await watch.noteUndone();
    }
    expect(watch.pauseBefore(planned(route))).toBeGreaterThan(0);
  });

  it('is not a change that follows from another network or underlay: such a change never waits, even between repairs', async () => {
    const simulated = await SimulatedHost.with(state);
    const watch = new DriftDamper(simulated.tools, 'cpn0');
    const smaller = { ...underlay, underlayMtu: 1400 };
    const elsewhere = {
      ...aimed,
      desired: desireFor(peer(1), network([peer(1)]), {}, { ...usualConstraints, underlay: smaller }),
    };
    for (const place of [aimed, elsewhere, aimed, elsewhere, aimed, elsewhere]) {
      expect(watch.pauseBefore({ ...place, changes: route })).toBe(0);
      await watch.onPass(passOf(place, route));
    }
    expect(simulated.logged).toEqual([]);
    for (let repair = 0; repair < 3; repair += 1) await watch.onPass(passOf(elsewhere, route));
    expect(watch.pauseBefore({ ...elsewhere, changes: route })).toBeGreaterThan(0);
    expect(watch.pauseBefore(planned(route))).toBe(0);
  });

  it('is not repaired for ten minutes after its repair was rolled back, unless it changes', async () => {
    const simulated = await SimulatedHost.with(state);
    const watch = new DriftDamper(simulated.tools, 'cpn0');
    const more = [...route, removed('route', '192.168.60.0/24', 'cpn0', 'gone')];
    for (const drift of [route, more]) {
      expect(watch.pauseBefore(planned(drift))).toBe(0);
      await watch.holdBack('no peer answered');
    }
    expect([route, more].map((drift) => watch.pauseBefore(planned(drift)))).toEqual([600, 600]);
    await watch.onPass({ ...passOf({ ...aimed, changes: route }), changes: [] });
    expect((await notes(simulated)).troubles).toEqual(['no peer answered']);
    simulated.seconds += 600;
    expect(watch.pauseBefore(planned(route))).toBe(0);
    await watch.onPass(passOf(aimed));
    expect((await notes(simulated)).troubles).toEqual([]);
  });
});

describe('drift of packet rules', () => {
  it('is repaired at once although a repair with it was rolled back', async () => {
    const simulated = await SimulatedHost.with(state);
    const watch = new DriftDamper(simulated.tools, 'cpn0');
    const drift = [...route, added('firewall', 'inet cpn_cpn0', [], 'a connector forwards packets')];
    expect(watch.pauseBefore(planned(drift))).toBe(0);
    await watch.holdBack('no peer answered');
    expect(watch.pauseBefore(planned(drift))).toBe(0);
  });
});
