import type { RemovalStatus } from '../../../contract/removal.ts';

const mostNames = 10;

export function describeLoss(peers: number): string {
  if (peers === 0) return 'It has no peers.';
  return peers === 1 ? 'Its peer loses the network.' : `All ${peers} peers lose the network and each other.`;
}

export function describePending({ revision, pending }: RemovalStatus): string {
  return `Hosts that have not applied the last removal (revision ${revision}), and may still reach the peer: ${list(pending)}.`;
}

/** Lists the hosts of a deleted network whose tunnels may still be up, in sentences. */
export function describeDeletion({ deleted_at, pending }: RemovalStatus): string[] {
  const older = pending.filter(({ deletion }) => deletion === 'unsupported');
  const others = pending.filter(({ deletion }) => deletion !== 'unsupported');
  const deleted = `This network was deleted at ${deleted_at}.`;
  if (pending.length === 0) return [deleted, 'All hosts have taken their tunnel down.'];
  return [
    deleted,
    ...(others.length === 0 ? [] : [`Hosts that have not taken their tunnel down: ${list(others)}.`]),
    ...(older.length === 0
      ? []
      : [
          `Hosts whose version of cpn keeps the tunnel up: ${list(older)}. Upgrade cpn there, or type “cpn leave” there.`,
        ]),
  ];
}

function list(pending: RemovalStatus['pending']): string {
  const names = pending.slice(0, mostNames).map(({ name, version }) => (version ? `${name} (cpn ${version})` : name));
  return `${names.join(', ')}${pending.length > names.length ? ` and ${pending.length - names.length} more` : ''}`;
}
