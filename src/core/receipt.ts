import type { Actual } from './actual.ts';
import { removed, updated } from './change.ts';
import { tableOf } from './firewall.ts';
import type { Step } from './step.ts';

/** Something that we made or changed on a host, and must take back. Written down before it is made. */
export type Made =
  | { readonly made: 'interface'; readonly link: string }
  | { readonly made: 'firewall'; readonly link: string }
  | { readonly made: 'sysctl'; readonly key: string; readonly before: string; readonly after: string }
  | { readonly made: 'folder'; readonly path: string };

export type Receipt = readonly Made[];

/** The receipt after `steps`: what was there before we first touched it is what stays written. */
export function record(receipt: Receipt, steps: readonly Step[], actual: Actual): Receipt {
  const made = steps.flatMap((step): Made[] => {
    if (step.do === 'create-link') return [{ made: 'interface', link: step.link }];
    if (step.do === 'set-firewall') return [{ made: 'firewall', link: step.firewall.link }];
    if (step.do !== 'set-sysctl') return [];
    const before = actual.sysctls[step.key];
    return before === undefined ? [] : [{ made: 'sysctl', key: step.key, before, after: step.value }];
  });
  const entries = new Map(receipt.map((entry) => [nameOf(entry), entry]));
  for (const entry of made) if (!entries.has(nameOf(entry))) entries.set(nameOf(entry), entry);
  return [...entries.values()];
}

/**
 * The steps that take back what the receipt names: packet rules and forwarding first, then the interface, and with it
 * its addresses and routes. A sysctl that somebody changed after us is theirs now.
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
