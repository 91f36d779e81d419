import type { Actual } from './actual.ts';
import { added, removed, updated } from './change.ts';
import { type Desired, forwardingKey } from './desired.ts';
import { firewallMarks, tableOf } from './firewall.ts';
import { goesWithLink, isStrict } from './link-sysctl.ts';
import { sameMembers } from './plan-device.ts';
import type { Step } from './step.ts';

const connectorForwards = 'a connector forwards packets';

/** Our table of packet rules: whole, or not there at all. */
export function planFirewall({ link, firewall }: Desired, actual: Actual): Step[] {
  const target = `inet ${tableOf(link)}`;
  if (firewall === null) {
    if (actual.firewall === null) return [];
    const change = removed('firewall', target, actual.firewall, 'this host is no connector');
    return [{ do: 'remove-firewall', link, changes: [change] }];
  }
  const marks = firewallMarks(firewall);
  if (actual.firewall === null) {
    return [{ do: 'set-firewall', firewall, changes: [added('firewall', target, marks, connectorForwards)] }];
  }
  if (sameMembers(marks, actual.firewall)) return [];
  const change = updated('firewall', target, actual.firewall, marks, 'the rules differ');
  return [{ do: 'set-firewall', firewall, changes: [change] }];
}

/** After the packet rules, so that nothing is forwarded without them. */
export function planSysctls({ sysctls }: Desired, actual: Actual): Step[] {
  return Object.entries(sysctls)
    .filter(([key, value]) => (goesWithLink(key) ? isStrict(key, actual.sysctls) : actual.sysctls[key] !== value))
    .map(([key, value]) => ({
      do: 'set-sysctl',
      key,
      value,
      changes: [updated('sysctl', key, actual.sysctls[key] ?? null, value, reasonOf(key))],
    }));
}

function reasonOf(key: string): string {
  return key === forwardingKey || goesWithLink(key) ? connectorForwards : 'a full tunnel marks its own packets';
}
