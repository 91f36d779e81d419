import type { Actual } from '../host-state/actual.ts';
import { tunnelTable } from '../host-state/marks.ts';
import type { OwnedResource, Receipt } from '../host-state/receipt.ts';
import { allForwardingKey } from '../host-state/sysctl-keys.ts';
import { isOfPair, isRouteTable } from '../routing/route-table.ts';
import type { ConfigureLink, SetSysctl, Step } from './step.ts';

/**
 * Returns the receipt as it is after `steps`, with the values from before cpn's first change. The
 * rules of an abandoned full tunnel leave it, because another network may use them. Returns
 * `receipt` itself if nothing is new.
 */
export function recordSteps(receipt: Receipt, steps: readonly Step[], actual: Actual): Receipt {
  const made = steps.flatMap((step): OwnedResource[] => {
    if (step.do === 'create-link') return [{ made: 'interface', link: step.link }];
    if (step.do === 'configure-link') return rulesOf(step);
    if (step.do === 'set-firewall') return [{ made: 'firewall', link: step.firewall.link }];
    if (step.do === 'set-hosts') return [{ made: 'hosts', link: step.link }];
    if (step.do !== 'set-sysctl' || step.receipt === 'none' || step.receipt === 'remove') return [];
    const { key, value, receipt: opening } = step;
    if (opening) return [{ made: 'sysctl', key, before: '0', after: value, opening }];
    const before = actual.sysctls[key];
    return before === undefined ? [] : [{ made: 'sysctl', key, before, after: value }];
  });
  const isGivenUp = steps.some((step) => givesUpTunnel(step, actual));
  const reopened = new Set(steps.flatMap((step) => (enablesForwarding(step) ? [step.key] : [])));
  const kept = receipt.filter((entry) => {
    if (entry.made === 'rules') return entry.table !== undefined || !isGivenUp;
    if (entry.made !== 'sysctl') return true;
    // Only earlier versions turned on forwarding for all interfaces. With its earlier value, as
    // after a reboot, the entry is void: what another tool turns on later stays on.
    const isVoid = entry.key === allForwardingKey && actual.sysctls[entry.key] === entry.before;
    return !(reopened.has(entry.key) || isVoid);
  });
  const entries = new Map(kept.map((entry) => [nameOf(entry), entry]));
  for (const entry of made) if (!entries.has(nameOf(entry))) entries.set(nameOf(entry), entry);
  return kept.length === receipt.length && entries.size === receipt.length ? receipt : [...entries.values()];
}

/** The receipt without what `steps` reverted; `receipt` itself if they reverted nothing. */
export function dropReverted(receipt: Receipt, steps: readonly Step[]): Receipt {
  const struck = new Set(
    steps.flatMap((step) => (step.do === 'set-sysctl' && step.receipt === 'remove' ? [step.key] : [])),
  );
  const left = receipt.filter((entry) => entry.made !== 'sysctl' || !struck.has(entry.key));
  return left.length === receipt.length ? receipt : left;
}

function enablesForwarding(step: Step): step is Step & SetSysctl {
  return step.do === 'set-sysctl' && typeof step.receipt === 'object';
}

function rulesOf(step: ConfigureLink): OwnedResource[] {
  const { link, commands } = step;
  const tables = commands.flatMap((command) => {
    if (!('add' in command) || command.add === 'address') return [];
    const table = command.add === 'rule' ? command.rule.table : command.table;
    return table && isRouteTable(table) ? [table] : [];
  });
  return [
    ...(entersTunnel(step) ? [{ made: 'rules', link } as const] : []),
    ...[...new Set(tables)].map((table) => ({ made: 'rules', link, table }) as const),
  ];
}

/** True if the step adds a rule of a full tunnel, or a route for such rules. */
function entersTunnel({ commands }: ConfigureLink): boolean {
  return commands.some((command) => {
    if (!('add' in command) || command.add === 'address') return false;
    return command.add === 'rule' ? !isOfPair(command.rule) : command.table === tunnelTable;
  });
}

/** True if the step removes the last route of a full tunnel. */
function givesUpTunnel(step: Step, { routes }: Actual): boolean {
  if (step.do !== 'configure-link' || entersTunnel(step)) return false;
  const removals = step.commands.filter((command) => 'remove' in command && command.remove === 'route');
  const going = removals.filter(({ table }) => table === tunnelTable).length;
  return going > 0 && going === routes.filter(({ table }) => table === tunnelTable).length;
}

function nameOf(entry: OwnedResource): string {
  if (entry.made === 'sysctl') return `sysctl ${entry.key}`;
  if (entry.made === 'rules') return `rules ${entry.link} ${entry.table ?? tunnelTable}`;
  return entry.made === 'folder' ? `folder ${entry.path}` : `${entry.made} ${entry.link}`;
}
