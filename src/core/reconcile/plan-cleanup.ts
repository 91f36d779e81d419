import { hasTable, tableOf } from '../forward/own-table.ts';
import type { Actual } from '../host-state/actual.ts';
import type { OwnedResource, Receipt } from '../host-state/receipt.ts';
import { allForwardingKey } from '../host-state/sysctl-keys.ts';
import { removed, updated } from './change.ts';
import { planHostsRemoval } from './plan-hosts.ts';
import { planThrowRemovals } from './plan-outside.ts';
import { planPairRemovals, planRuleRemovals } from './plan-rules.ts';
import type { Step } from './step.ts';

/**
 * Removes what the receipt lists: first forwarding, names and policy rules; then the interface;
 * last the packet rules, when nothing is forwarded. A sysctl changed since is another program's.
 */
export function planCleanup(receipt: Receipt, actual: Actual): Step[] {
  const last = ['interface', 'firewall'];
  const inOrder = receipt.toReversed().toSorted((one, other) => last.indexOf(one.made) - last.indexOf(other.made));
  return inOrder.flatMap((entry) => planReversal(entry, actual));
}

function planReversal(entry: OwnedResource, actual: Actual): Step[] {
  const reason = 'taken back';
  switch (entry.made) {
    case 'sysctl': {
      // If another tool changed the forwarding of all interfaces since cpn turned this one on, it
      // also set this value: the value stays.
      const isTheirs = entry.opening !== undefined && entry.opening.all !== (actual.sysctls[allForwardingKey] ?? '0');
      if (actual.sysctls[entry.key] !== entry.after || isTheirs) return [];
      const change = updated('sysctl', entry.key, entry.after, entry.before, reason);
      return [{ do: 'set-sysctl', key: entry.key, value: entry.before, changes: [change] }];
    }
    case 'firewall': {
      if (!hasTable(actual)) return [];
      const change = removed('firewall', `inet ${tableOf(entry.link)}`, actual.firewall, reason);
      return [{ do: 'remove-firewall', link: entry.link, changes: [change] }];
    }
    case 'hosts':
      return planHostsRemoval(entry.link, actual, reason);
    case 'rules': {
      const { table } = entry;
      const removals = table
        ? [...planPairRemovals(table, actual, reason), ...planThrowRemovals(table, actual, reason)]
        : planRuleRemovals(actual, reason);
      const commands = removals.map(([command]) => command);
      const changes = removals.map(([, change]) => change);
      return commands.length === 0 ? [] : [{ do: 'configure-link', link: entry.link, commands, changes }];
    }
    case 'interface': {
      if (actual.link === null) return [];
      const change = removed('interface', entry.link, 'wireguard', reason);
      return [{ do: 'delete-link', link: entry.link, changes: [change] }];
    }
    case 'folder':
      return [];
  }
}
