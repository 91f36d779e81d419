import { describe, expect, it } from 'vitest';
import type { Actual, HostsFile } from '../../../src/core/host-state/actual.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { planCleanup } from '../../../src/core/reconcile/plan-cleanup.ts';
import { explainHosts } from '../../../src/core/reconcile/plan-hosts.ts';
import { recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import { bare, desireFor, network, options, peer } from '../samples.ts';
import { simulate } from '../simulate.ts';

const one = peer(1);
const map = network([one, peer(2)], { routes: [] });
const desired = desireFor(one, map, { options: { ...options, hosts: true } });
const unnamed = desireFor(one, map);
const now = 1_800_000_000;

/** This host as it should be, but for its hosts file. */
function withHosts(hosts: HostsFile | null): Actual {
  return { ...simulate(bare, plan(unnamed, bare, now)), hosts };
}

const clean = { block: null, trouble: null };
const named = { block: desired.hosts, trouble: null };
const changes = (actual: Actual, wanted = desired) => plan(wanted, actual, now).flatMap((step) => step.changes);

describe('the plan for a hosts file', () => {
  it('adds the missing names of the peers, and lists them', () => {
    expect(changes(withHosts(clean))).toEqual([
      {
        action: 'add',
        kind: 'hosts',
        target: 'cpn0',
        before: null,
        after: ['10.77.0.1 peer-1.office.cpn.internal', '10.77.0.2 peer-2.office.cpn.internal'],
        reason: 'the hosts file does not name the peers',
      },
    ]);
    expect(changes(withHosts(named))).toEqual([]);
  });

  it('reports only the differing lines of an edited block', () => {
    const block = desired.hosts?.replace('10.77.0.2 ', '10.0.0.66 ') ?? null;
    expect(changes(withHosts({ ...named, block }))).toMatchObject([
      {
        action: 'update',
        before: ['10.0.0.66 peer-2.office.cpn.internal'],
        after: ['10.77.0.2 peer-2.office.cpn.internal'],
      },
    ]);
  });

  it('takes the names away that are not wanted any more', () => {
    expect(changes(withHosts(named), unnamed)).toMatchObject([{ action: 'remove', kind: 'hosts', target: 'cpn0' }]);
    expect(changes(withHosts(clean), unnamed)).toEqual([]);
    expect(changes(withHosts(null), unnamed)).toEqual([]);
  });

  it('leaves a read-only file unchanged, and reports why while its block differs', () => {
    const stuck = (block: string | null) => withHosts({ block, trouble: 'no' });
    for (const block of [null, desired.hosts, 'x']) expect(changes(stuck(block))).toEqual([]);
    expect(explainHosts(desired, stuck(null))).toBe('no');
    expect(explainHosts(desired, stuck(desired.hosts))).toBeNull();
    expect(explainHosts(desired, withHosts(clean))).toBeNull();
    expect(explainHosts(unnamed, stuck(desired.hosts))).toBe('no');
  });

  it('comes last, is written down, and is taken back', () => {
    const steps = plan(desired, { ...bare, hosts: clean }, now);
    expect(steps.at(-1)?.do).toBe('set-hosts');
    const receipt = recordSteps([], steps, bare);
    expect(receipt).toContainEqual({ made: 'hosts', link: 'cpn0' });
    const back = (hosts: HostsFile) => planCleanup(receipt, { ...bare, hosts });
    expect(back(named)).toMatchObject([{ do: 'remove-hosts', changes: [{ action: 'remove', kind: 'hosts' }] }]);
    expect(back(clean)).toEqual([{ do: 'remove-hosts', link: 'cpn0', changes: [] }]);
    expect(back({ ...named, trouble: 'no' })).toEqual([]);
  });
});
