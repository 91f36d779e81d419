import type { Actual } from './actual.ts';
import { removed, updated } from './change.ts';
import { tableOf } from './firewall.ts';
import { goesWithLink } from './link-sysctl.ts';
import { tunnelTable } from './marks.ts';
import { planHostsRemoval } from './plan-hosts.ts';
import { planRuleRemovals } from './plan-rules.ts';
import type { ConfigureLink, Step } from './step.ts';

/** Something that we made or changed on a host, and must take back. Written down before it is made. */
export type Made =
  | { readonly made: 'interface'; readonly link: string }
  | { readonly made: 'firewall'; readonly link: string }
  /** The policy rules of a full tunnel, which do not go with its interface. */
  | { readonly made: 'rules'; readonly link: string }
  | { readonly made: 'sysctl'; readonly key: string; readonly before: string; readonly after: string }
  /** Our block in the hosts file. */
  | { readonly made: 'hosts'; readonly link: string }
  | { readonly made: 'folder'; readonly path: string };

export type Receipt = readonly Made[];

/**
 * The receipt after `steps`: what was there before we first touched it is what stays written. A full tunnel that is given up
 * may be another network's from then on, and is struck out. Returns `receipt` itself where nothing is new.
 */
export function record(receipt: Receipt, steps: readonly Step[], actual: Actual): Receipt {
  const made = steps.flatMap((step): Made[] => {
    if (step.do === 'create-link') return [{ made: 'interface', link: step.link }];
    if (step.do === 'configure-link' && entersTunnel(step)) return [{ made: 'rules', link: step.link }];
    if (step.do === 'set-firewall') return [{ made: 'firewall', link: step.firewall.link }];
    if (step.do === 'set-hosts') return [{ made: 'hosts', link: step.link }];
    if (step.do !== 'set-sysctl' || goesWithLink(step.key)) return [];
    const before = actual.sysctls[step.key];
    return before === undefined ? [] : [{ made: 'sysctl', key: step.key, before, after: step.value }];
  });
  const kept = steps.some((step) => givesUpTunnel(step, actual))
    ? receipt.filter(({ made }) => made !== 'rules')
    : receipt;
  const entries = new Map(kept.map((entry) => [nameOf(entry), entry]));
  for (const entry of made) if (!entries.has(nameOf(entry))) entries.set(nameOf(entry), entry);
  return kept === receipt && entries.size === receipt.length ? receipt : [...entries.values()];
}

/** True when it adds a rule of a full tunnel, or a route for such rules. */
function entersTunnel({ commands }: ConfigureLink): boolean {
  return commands.some(
    (command) =>
      'add' in command && (command.add === 'rule' || (command.add === 'route' && command.table === tunnelTable)),
  );
}

/** True when the last route of a full tunnel goes. */
function givesUpTunnel(step: Step, { routes }: Actual): boolean {
  if (step.do !== 'configure-link' || entersTunnel(step)) return false;
  const removals = step.commands.filter((command) => 'remove' in command && command.remove === 'route');
  const going = removals.filter(({ table }) => table === tunnelTable).length;
  return going > 0 && going === routes.filter(({ table }) => table === tunnelTable).length;
}

/**
 * The steps that take back what the receipt names: packet rules, forwarding, names and policy rules first, then the interface, and
 * with it its addresses and routes. A sysctl that somebody changed after us is theirs now.
 */
export function planTakeBack(receipt: Receipt, actual: Actual): Step[] {
  const reason = 'taken back';
  return receipt.toReversed().flatMap((entry): Step[] => {
    if (entry.made === 'sysctl' && actual.sysctls[entry.key] === entry.after) {
      const change = updated('sysctl', entry.key, entry.after, entry.before, reason);
      return [{ do: 'set-sysctl', key: entry.key, value: entry.before, changes: [change] }];
    }
    if (entry.made === 'firewall' && actual.firewall !== null) {
      const change = removed('firewall', `inet ${tableOf(entry.link)}`, actual.firewall, reason);
      return [{ do: 'remove-firewall', link: entry.link, changes: [change] }];
    }
    if (entry.made === 'hosts') return planHostsRemoval(entry.link, actual, reason);
    if (entry.made === 'rules') {
      const removals = planRuleRemovals(actual, reason);
      const commands = removals.map(([command]) => command);
      const changes = removals.map(([, change]) => change);
      return commands.length === 0 ? [] : [{ do: 'configure-link', link: entry.link, commands, changes }];
    }
    if (entry.made === 'interface' && actual.link !== null) {
      return [
        { do: 'delete-link', link: entry.link, changes: [removed('interface', entry.link, 'wireguard', reason)] },
      ];
    }
    return [];
  });
}

function nameOf(entry: Made): string {
  if (entry.made === 'sysctl') return `sysctl ${entry.key}`;
  return entry.made === 'folder' ? `folder ${entry.path}` : `${entry.made} ${entry.link}`;
}
