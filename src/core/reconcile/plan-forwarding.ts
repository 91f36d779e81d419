import { boundsForwarding, canChange, firewallMarks, hasTable, isLoaded, tableOf } from '../forward/own-table.ts';
import type { Firewall } from '../forward/packet-rule.ts';
import type { Actual } from '../host-state/actual.ts';
import {
  allForwardingKey,
  forwardingKey,
  isForwardingKey,
  isStrict,
  sourceFilterKey,
} from '../host-state/sysctl-keys.ts';
import { added, type Change, removed, updated } from './change.ts';
import type { Desired } from './desired.ts';
import type { SetSysctl, Step } from './step.ts';

const connectorForwards = 'a connector forwards packets';
const hostForwards = 'this host forwards packets';
const closesAddress = 'only the tunnel and this host reach the tunnel address';

/**
 * Replaces our whole table of packet rules, or removes it. If the table of a closed network has the
 * rules of `last`, it is changed in place.
 */
export function planFirewall(desired: Desired, actual: Actual, last: Firewall | null = null): Step[] {
  const { link, firewall } = desired;
  const target = `inet ${tableOf(link)}`;
  if (firewall === null) {
    if (!hasTable(actual)) return [];
    const change = removed('firewall', target, actual.firewall, 'this host has no packet rules');
    return [{ do: 'remove-firewall', link, changes: [change] }];
  }
  if (isLoaded(firewall, actual)) return [];
  const marks = firewallMarks(firewall);
  const change =
    actual.firewall === null
      ? added('firewall', target, marks, desired.forwards ? whyForwarding(desired) : closesAddress)
      : updated('firewall', target, actual.firewall, marks, 'the rules differ');
  const loaded = last !== null && isLoaded(last, actual) && canChange(last, firewall) ? last : undefined;
  return [{ do: 'set-firewall', firewall, ...(loaded && { loaded }), changes: [change] }];
}

/**
 * Runs first. Turns off unneeded forwarding and, while our table is missing, all forwarding that
 * only our packet rules limit. Turning it on again with the table is no change.
 */
export function planForwardingOff(desired: Desired, actual: Actual): Step[] {
  const { link, forwards, unneeded } = desired;
  const key = forwardingKey(link);
  const unasked = !forwards && actual.sysctls[key] === '1' && actual.isSealed !== true;
  return [
    ...(unasked ? [setForwarding(key, '0', [updated('sysctl', key, '1', '0', 'nothing is forwarded here')])] : []),
    ...unneeded.map(forwardingKey).flatMap((each): Step[] => {
      if (actual.sysctls[each] !== '1') return [];
      const change = updated('sysctl', each, '1', '0', 'no route of this connector uses it');
      return [{ ...setForwarding(each, '0', [change]), receipt: 'remove' }];
    }),
    ...(forwards && !boundsForwarding(actual) ? planForwardingPause(desired, actual) : []),
  ];
}

/** Turns off all forwarding that only our packet rules limit. */
export function planForwardingPause({ link, ingress }: Desired, { sysctls }: Actual): Step[] {
  const ours = ingress.filter(({ closed }) => closed !== null).map((each) => each.link);
  return [link, ...ours]
    .map(forwardingKey)
    .filter((key) => sysctls[key] === '1')
    .map((key) => setForwarding(key, '0', []));
}

/** Turns forwarding on, after the packet rules, so that nothing is forwarded without them. */
export function planForwardingOn(desired: Desired, actual: Actual): Step[] {
  const { link, forwards, ingress, revertsAll } = desired;
  if (!forwards) return [];
  const isPaused = !boundsForwarding(actual);
  const reverts = revertsAll && actual.sysctls[allForwardingKey] === '1';
  const change = (key: string) =>
    actual.sysctls[key] === '1'
      ? []
      : [updated('sysctl', key, actual.sysctls[key] ?? null, '1', whyForwarding(desired))];
  const openings = ingress.flatMap((each): Step[] => {
    const key = forwardingKey(each.link);
    if (reverts || actual.sysctls[key] !== '1') {
      return [{ ...setForwarding(key, '1', change(key)), receipt: each.opening }];
    }
    return isPaused && each.closed !== null ? [setForwarding(key, '1', [])] : [];
  });
  const own = forwardingKey(link);
  const opensOwn = isPaused || reverts || actual.sysctls[own] !== '1';
  return [...(reverts ? [revertAll()] : []), ...openings, ...(opensOwn ? [setForwarding(own, '1', change(own))] : [])];
}

/** This briefly turns off the forwarding of every interface. The next steps turn ours on again. */
function revertAll(): Step {
  const why = 'only interfaces that routes use forward';
  const changes = [updated('sysctl', allForwardingKey, '1', '0', why)];
  return { ...setForwarding(allForwardingKey, '0', changes), receipt: 'remove' };
}

function setForwarding(key: string, value: '0' | '1', changes: readonly Change[]): Step & SetSysctl {
  return { do: 'set-sysctl', key, value, receipt: 'none', changes };
}

/** True for a step that turns forwarding on, which must not run without the packet rules. */
export function enablesForwarding(step: Step): boolean {
  return step.do === 'set-sysctl' && isForwardingKey(step.key) && step.value === '1';
}

/** True for a step that turns off forwarding until the packet rules are in place. */
export function pausesForwarding(step: Step): boolean {
  return step.do === 'set-sysctl' && isForwardingKey(step.key) && step.value === '0' && step.changes.length === 0;
}

/** True for a change that is impossible while the packet rules do not load. */
export function needsRules({ kind, target, after }: Change): boolean {
  return kind === 'firewall' || (kind === 'sysctl' && isForwardingKey(target) && after === '1');
}

export function planSysctls({ link, sysctls }: Desired, actual: Actual): Step[] {
  const own = sourceFilterKey(link);
  return Object.entries(sysctls)
    .filter(([key, value]) => (key === own ? isStrict(key, actual.sysctls) : actual.sysctls[key] !== value))
    .map(([key, value]) => ({
      do: 'set-sysctl',
      key,
      value,
      ...(key === own && { receipt: 'none' }),
      changes: [
        updated(
          'sysctl',
          key,
          actual.sysctls[key] ?? null,
          value,
          key === own ? connectorForwards : 'a full tunnel marks its own packets',
        ),
      ],
    }));
}

function whyForwarding({ isConnector }: Desired): string {
  return isConnector ? connectorForwards : hostForwards;
}
