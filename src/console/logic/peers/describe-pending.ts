import type { RemovalStatus } from '../../../contract/removal.ts';

const mostNames = 10;

/** Names the hosts that have not applied the last removal. */
export function describePending({ revision, pending }: RemovalStatus): string {
  const names = pending.slice(0, mostNames).map(({ name }) => name);
  const more = pending.length > names.length ? ` and ${pending.length - names.length} more` : '';
  return `Hosts that have not applied the last removal (revision ${revision}), and may still reach the peer: ${names.join(', ')}${more}.`;
}
