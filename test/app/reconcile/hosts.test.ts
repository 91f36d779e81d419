import { describe, expect, it } from 'vitest';
import { takeDown } from '../../../src/app/networks/down.ts';
import { withOptions } from '../../../src/app/pins.ts';
import { describeEvaluation } from '../../../src/app/problems/describe-evaluation.ts';
import { evaluateNetwork, labelNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { noNotes } from '../../../src/store/notes.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { bare, keyPair, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { name: 'edge' })], { routes: [] });
const naming = { ...options, hosts: true };
const confirming = { withinMs: 20_000 };

/** A host that is to name the peers of its network. */
async function namingDesk(): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map, { options: naming }));
  simulated.actual = { ...bare, hosts: { block: null, trouble: null } };
  return simulated;
}

describe('a pass that names the peers', () => {
  it('does so once, and down undoes it', async () => {
    const simulated = await namingDesk();
    await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming);
    expect(simulated.actual.hosts?.block).toContain('10.77.0.2 edge.office.cpn.internal\n');
    expect((await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming))?.changes).toEqual([]);
    await takeDown(simulated.tools);
    expect(simulated.actual.hosts).toEqual({ block: null, trouble: null });
    expect((await simulated.state()).receipt).toEqual([]);
  });

  it('brings the tunnel up when the file cannot be written, warns, and retries', async () => {
    const simulated = await namingDesk();
    const warnings: string[] = [];
    const tools = { ...simulated.tools, warn: (text: string) => void warnings.push(text) };
    simulated.refusesStep = (step) => step.do === 'set-hosts';
    await passNetwork(tools, 'cpn0', noUpdate, confirming);
    expect(simulated.actual).toMatchObject({ link: { up: true }, hosts: { block: null } });
    expect(warnings).toEqual(['set-hosts exited with 1: no']);
    simulated.refusesStep = () => false;
    expect((await passNetwork(tools, 'cpn0', noUpdate, confirming))?.changes).toMatchObject([{ kind: 'hosts' }]);
    expect(simulated.actual.hosts?.block).not.toBeNull();
  });

  it('keeps the receipt of names that it could not remove', async () => {
    const simulated = await namingDesk();
    await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming);
    simulated.refusesStep = (step) => step.do === 'remove-hosts';
    await takeDown(simulated.tools);
    expect(simulated.actual.link).toBeNull();
    expect((await simulated.state()).receipt).toEqual([{ made: 'hosts', link: 'cpn0' }]);
  });

  it('does not change a file that it must not write; the status warns while the network is up', async () => {
    const simulated = await namingDesk();
    simulated.actual = { ...simulated.actual, hosts: { block: null, trouble: 'it is full of holes' } };
    await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming);
    const statusOf = async (state: Joined) =>
      describeEvaluation(await evaluateNetwork(simulated.tools, state), noNotes, 0);
    const warning = 'the hosts file lacks the peers of cpn0: it is full of holes';
    expect(await statusOf(await simulated.state())).toMatchObject({ state: 'up', drift: [], warnings: [warning] });
    expect((await statusOf({ ...(await simulated.state()), enabled: false })).warnings).not.toContain(warning);
  });
});

describe('a name that a service gives to another peer', () => {
  const named = (revision: string, ...names: [number, string][]) =>
    mapAt(
      revision,
      names.map(([id, name]) => peer(id, { name })),
      { routes: [] },
    );
  const linesOf = (simulated: SimulatedHost) =>
    simulated.actual.hosts?.block?.split('\n').filter((line) => /^10\.77\.0\.[23] /.test(line));
  const applyMap = (simulated: SimulatedHost, newer: NetworkMap) => {
    simulated.service.mapReplies = [answerWith(newer)];
    return passNetwork(simulated.tools, 'cpn0', { map: newer, resolved: null }, confirming);
  };

  it('stays with its first peer, through passes and restarts, until that peer leaves', async () => {
    const simulated = await namingDesk();
    await applyMap(simulated, named('"2"', [2, 'db'], [3, 'web']));
    await applyMap(simulated, named('"3"', [2, 'old'], [3, 'web']));
    // The labels are on disk: the next pass reads them, as after a restart.
    expect((await simulated.state()).labels).toContainEqual({ peer: 2, labels: ['old', 'db', 'edge'] });
    await applyMap(simulated, named('"4"', [2, 'old'], [3, 'db']));
    const suffix = '.office.cpn.internal';
    expect(linesOf(simulated)).toEqual([
      `10.77.0.2 old${suffix} db${suffix} edge${suffix}`,
      `10.77.0.3 db-3${suffix} web${suffix}`,
    ]);
    expect((await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming))?.changes).toEqual([]);
    const evaluation = await evaluateNetwork(simulated.tools, await simulated.state());
    expect(describeEvaluation(evaluation, noNotes, 0).peers).toMatchObject([
      { name: 'old', label: 'old', labelTaken: null },
      { name: 'db', label: 'db-3', labelTaken: { label: 'db', by: 'old' } },
    ]);
    await applyMap(simulated, named('"5"', [3, 'db']));
    expect(linesOf(simulated)).toEqual([`10.77.0.3 db${suffix} db-3${suffix} web${suffix}`]);
  });

  it('is let go of where the hosts file names no peers for a while', async () => {
    const simulated = await namingDesk();
    await applyMap(simulated, named('"2"', [2, 'db']));
    const state = withOptions(await simulated.state(), { ...naming, hosts: false, dns: false });
    expect(state.labels).toEqual([]);
  });
});

describe('two networks of one name', () => {
  it('have two labels: the one with the lower id keeps it', async () => {
    const first = joinedTo(map, { options: naming });
    const other = (interfaceName: string, id: number, name: string, changes: Partial<Joined> = {}): Joined => ({
      ...joinedTo({ ...map, id, name }, { options: naming, interface: interfaceName, keyPair: keyPair(9) }),
      createdAt: '2026-01-02T00:00:00.000Z',
      ...changes,
    });
    const simulated = await SimulatedHost.with(first);
    const second = other('cpn1', 3, 'Office');
    const elsewhere = other('cpn2', 7, 'office');
    const all = [first, second, elsewhere];
    expect(all.map((state) => labelNetwork(state, all))).toEqual(['office-7', 'office', 'office-7-2']);
    const labelled = { ...first, label: 'office' };
    const later = [labelled, second, elsewhere];
    expect(later.map((state) => labelNetwork(state, later))).toEqual(['office', 'office-3', 'office-7']);
    for (const state of [second, elsewhere]) await simulated.tools.store.write(state);
    await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming);
    expect((await simulated.state()).label).toBe('office-7');
  });
});
