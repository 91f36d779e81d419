import type { Actual } from '../host-state/actual.ts';
import { linesOf } from '../names/hosts-block.ts';
import { added, removed, updated } from './change.ts';
import type { Desired } from './desired.ts';
import type { Step } from './step.ts';

/** Plans our block. A hosts file that cannot be changed stays: the tunnel works without names. */
export function planHosts({ link, hosts: wanted }: Pick<Desired, 'link' | 'hosts'>, { hosts }: Actual): Step[] {
  if (hosts === null || hosts.trouble !== null || hosts.block === wanted) return [];
  if (wanted === null) return [removal(link, hosts.block, 'the hosts file must not name the peers')];
  const after = linesOf(wanted);
  const before = hosts.block === null ? [] : linesOf(hosts.block);
  const change =
    hosts.block === null
      ? added('hosts', link, after, 'the hosts file does not name the peers')
      : updated(
          'hosts',
          link,
          missingIn(after, before),
          missingIn(before, after),
          'our block in the hosts file differs',
        );
  return [{ do: 'set-hosts', link, block: wanted, changes: [change] }];
}

/** Planned also without a block, to remove what an interrupted write left next to the file. */
export function planHostsRemoval(link: string, { hosts }: Pick<Actual, 'hosts'>, reason: string): Step[] {
  return hosts === null || hosts.trouble !== null ? [] : [removal(link, hosts.block, reason)];
}

/** Why the hosts file lacks our block as desired; null if it has it, or will after a pass. */
export function explainHosts(
  { hosts: wanted }: Pick<Desired, 'hosts'>,
  { hosts }: Pick<Actual, 'hosts'>,
): string | null {
  return hosts === null || hosts.block === wanted ? null : hosts.trouble;
}

function removal(link: string, block: string | null, reason: string): Step {
  const changes = block === null ? [] : [removed('hosts', link, linesOf(block), reason)];
  return { do: 'remove-hosts', link, changes };
}

/** Returns the lines that `other` lacks. */
function missingIn(other: readonly string[], lines: readonly string[]): string[] {
  const known = new Set(other);
  return lines.filter((line) => !known.has(line));
}
