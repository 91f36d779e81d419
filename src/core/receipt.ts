import type { Actual } from './actual.ts';
import { removed, updated } from './change.ts';
import { tableOf } from './firewall.ts';
import { allForwardingKey } from './link-sysctl.ts';
import { tunnelTable } from './marks.ts';
import { planHostsRemoval } from './plan-hosts.ts';
import { planRuleRemovals } from './plan-rules.ts';
import type { ConfigureLink, Opening, SetSysctl, Step } from './step.ts';

/** Something that we made or changed on a host, and must take back. Written down before it is made. */
export type Made =
  | { readonly made: 'interface'; readonly link: string }
  | { readonly made: 'firewall'; readonly link: string }
  /** The policy rules of a full tunnel, which do not go with its interface. */
  | { readonly made: 'rules'; readonly link: string }
  | {
      readonly made: 'sysctl';
      readonly key: string;
      readonly before: string;
      readonly after: string;
      /** Of the forwarding of an interface. */
      readonly opening?: Opening;
    }
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
    if (step.do !== 'set-sysctl' || step.receipt === 'none' || step.receipt === 'strike') return [];
    const { key, value, receipt: opening } = step;
    if (opening) return [{ made: 'sysctl', key, before: '0', after: value, opening }];
    const before = actual.sysctls[key];
    return before === undefined ? [] : [{ made: 'sysctl', key, before, after: value }];
  });
  const isGivenUp = steps.some((step) => givesUpTunnel(step, actual));
  const reopened = new Set(steps.flatMap((step) => (isOpening(step) ? [step.key] : [])));
  const kept = receipt.filter((entry) => {
    if (entry.made === 'rules') return !isGivenUp;
    return entry.made !== 'sysctl' || !(reopened.has(entry.key) || isVoid(entry, actual));
  });
  const entries = new Map(kept.map((entry) => [nameOf(entry), entry]));
  for (const entry of made) if (!entries.has(nameOf(entry))) entries.set(nameOf(entry), entry);
  return kept.length === receipt.length && entries.size === receipt.length ? receipt : [...entries.values()];
}

/** The receipt once `steps` are done: without what they took back. Returns `receipt` itself where that is nothing. */
export function strike(receipt: Receipt, steps: readonly Step[]): Receipt {
  const struck = new Set(
    steps.flatMap((step) => (step.do === 'set-sysctl' && step.receipt === 'strike' ? [step.key] : [])),
  );
  const left = receipt.filter((entry) => entry.made !== 'sysctl' || !struck.has(entry.key));
  return left.length === receipt.length ? receipt : left;
}

function isOpening(step: Step): step is Step & SetSysctl {
  return step.do === 'set-sysctl' && typeof step.receipt === 'object';
}

/** Forwarding as a whole, which only earlier versions turned on, went off with a reboot: it was turned on again by another tool. */
function isVoid({ key, before }: Made & { made: 'sysctl' }, { sysctls }: Actual): boolean {
  return key === allForwardingKey && sysctls[key] === before;
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
 * The steps that take back what the receipt names: forwarding, names and policy rules first, then the interface, and with it its
 * addresses and routes, and the packet rules when nothing can be forwarded any more. A sysctl that was changed
 * after us is theirs now.
 */
export function planTakeBack(receipt: Receipt, actual: Actual): Step[] {
  const last = ['interface', 'firewall'];
  const inOrder = receipt.toReversed().toSorted((one, other) => last.indexOf(one.made) - last.indexOf(other.made));
  return inOrder.flatMap((entry) => planReversal(entry, actual));
}

function planReversal(entry: Made, actual: Actual): Step[] {
  const reason = 'taken back';
  switch (entry.made) {
    case 'sysctl': {
      if (actual.sysctls[entry.key] !== entry.after || isTheirs(entry, actual)) return [];
      const change = updated('sysctl', entry.key, entry.after, entry.before, reason);
      return [{ do: 'set-sysctl', key: entry.key, value: entry.before, changes: [change] }];
    }
    case 'firewall': {
      if (actual.firewall === null) return [];
      const change = removed('firewall', `inet ${tableOf(entry.link)}`, actual.firewall, reason);
      return [{ do: 'remove-firewall', link: entry.link, changes: [change] }];
    }
    case 'hosts':
      return planHostsRemoval(entry.link, actual, reason);
    case 'rules': {
      const removals = planRuleRemovals(actual, reason);
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

/** True when another tool set the forwarding of every interface after one was turned on. */
function isTheirs({ opening }: Made & { made: 'sysctl' }, { sysctls }: Actual): boolean {
  return opening !== undefined && opening.all !== (sysctls[allForwardingKey] ?? '0');
}

function nameOf(entry: Made): string {
  if (entry.made === 'sysctl') return `sysctl ${entry.key}`;
  return entry.made === 'folder' ? `folder ${entry.path}` : `${entry.made} ${entry.link}`;
}
