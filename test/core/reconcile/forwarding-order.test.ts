import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noForwarding } from '../../../src/core/forward/ingress.ts';
import { boundsForwarding } from '../../../src/core/forward/own-table.ts';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import type { Receipt } from '../../../src/core/host-state/receipt.ts';
import { allForwardingKey, forwardingKey } from '../../../src/core/host-state/sysctl-keys.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import type { Desired } from '../../../src/core/reconcile/desired.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { planCleanup } from '../../../src/core/reconcile/plan-cleanup.ts';
import { planForwardingPause } from '../../../src/core/reconcile/plan-forwarding.ts';
import { dropReverted, recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import type { Step } from '../../../src/core/reconcile/step.ts';
import { bare, desireFor, dialled, network, networksWithExit, peer } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const shut = ['eth0', 'eth1'].map((link) => [forwardingKey(link), '0'] as const);
const router: Actual = { ...bare, sysctls: { [allForwardingKey]: '0', ...Object.fromEntries(shut) } };

/** A host, and the record of what cpn changed there. */
interface Recorded {
  readonly actual: Actual;
  readonly receipt: Receipt;
}

/** Each run plans twice, and each step of it is simulated. */
const runs = { numRuns: 25 };
const start: Recorded = { actual: router, receipt: [] };

/** What a host should be, from what it is now. */
type Aim = (from: Recorded) => Desired;

const aims: fc.Arbitrary<Aim> = fc
  .tuple(networksWithExit, fc.nat(), fc.boolean())
  .map(([map, at, hasNft]) => ({ actual, receipt }) => {
    const self = map.peers[at % map.peers.length] as Peer;
    return desireFor(self, map, { forwarding: { ...noForwarding, sysctls: actual.sysctls, receipt, hasNft } });
  });

/** The forwarding that is on and that only our packet rules limit. */
function findLimited({ actual, receipt }: Recorded): string[] {
  const opened = receipt.flatMap((entry) => (entry.made === 'sysctl' && entry.opening ? [entry.key] : []));
  return [forwardingKey('cpn0'), ...opened].filter((key) => actual.sysctls[key] === '1');
}

/** Applies the steps one by one. At each moment from the first that changes more than forwarding, rules are in force. */
function follow({ actual, receipt }: Recorded, steps: readonly Step[], isSafe: boolean): Actual {
  let moment = actual;
  for (const step of steps) {
    const isPause = step.do === 'set-sysctl' && step.value === '0';
    if (!isPause || isSafe)
      expect(boundsForwarding(moment) ? [] : findLimited({ actual: moment, receipt })).toEqual([]);
    moment = simulate(moment, [step]);
  }
  expect(boundsForwarding(moment) ? [] : findLimited({ actual: moment, receipt })).toEqual([]);
  return moment;
}

function reach(from: Recorded, aim: Aim, isSafe = true): Recorded {
  const steps = plan(aim(from), from.actual, now);
  const receipt = recordSteps(from.receipt, steps, from.actual);
  const actual = follow({ ...from, receipt }, steps, isSafe);
  return { actual, receipt: dropReverted(receipt, steps) };
}

describe('the packet rules', () => {
  it('are in force before anything is forwarded, whatever the host was before', () => {
    let forwarding = 0;
    fc.assert(
      fc.property(aims, aims, (before, after) => {
        const host = reach(start, before);
        forwarding += findLimited(host).length;
        reach(host, after);
      }),
      runs,
    );
    expect(forwarding).toBeGreaterThan(3);
  });

  it('stay until nothing is forwarded any more when all is taken back', () => {
    fc.assert(
      fc.property(aims, (aim) => {
        const host = reach(start, aim);
        expect(follow(host, planCleanup(host.receipt, host.actual), true)).toEqual(router);
      }),
      runs,
    );
  });

  it.each<[string, (loaded: Actual['firewall']) => Actual['firewall']]>([
    ['are gone', () => null],
    ['are empty', () => []],
    ['limit no forwarded packets any more', (loaded) => loaded?.filter((mark) => mark.startsWith('arriving ')) ?? null],
  ])('that %s are loaded while nothing is forwarded, and then it is forwarded again', (_, lose) => {
    fc.assert(
      fc.property(aims, (aim) => {
        const host = reach(start, aim);
        const lost = { ...host, actual: { ...host.actual, firewall: lose(host.actual.firewall) } };
        expect(reach(lost, aim, false).actual).toEqual(host.actual);
      }),
      runs,
    );
  });
});

describe('the pause of forwarding', () => {
  const self = peer(1, { type: 'connector', endpoint: dialled(1) });
  const desired = desireFor(self, network([self, peer(2)]));
  const on = {
    ...router.sysctls,
    ...Object.fromEntries(['cpn0', 'eth0', 'eth1'].map((link) => [forwardingKey(link), '1'])),
  };
  const keys = (steps: readonly Step[]) => steps.flatMap((step) => (step.do === 'set-sysctl' ? [step.key] : []));

  it('leaves the interfaces alone whose forwarding was on before, by another program', () => {
    const ingress = ['eth0', 'eth1'].map((link) => ({
      link,
      closed: link === 'eth1' ? null : ['eth1'],
      opening: { link, all: '0', links: [] },
    }));
    const paused = planForwardingPause({ ...desired, ingress }, { ...router, sysctls: on });
    expect(keys(paused)).toEqual([forwardingKey('cpn0'), forwardingKey('eth0')]);
    expect(keys(plan({ ...desired, ingress }, { ...router, sysctls: on }, now))).not.toContain(forwardingKey('eth1'));
  });
});
