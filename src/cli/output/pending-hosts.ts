import type { AdminService, PendingHost } from '../../api/admin-service.ts';
import { CpnError, printable } from '../../core/errors/index.ts';
import { describeAge } from '../../core/health/peer-health.ts';
import type { Id } from '../../core/map/model.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

import { note, warn } from './output.ts';

const usualSeconds = 10;
/** The maximum wait of the contract. */
const maxSeconds = 60;

export const pendingFlags: Flags = {
  wait: {
    kind: 'text',
    value: 'SECONDS',
    summary: 'time for the hosts to apply it, 0 to 60',
    byDefault: String(usualSeconds),
  },
};

export function readPatience(input: Input): number {
  return input.number('wait', 0, maxSeconds) ?? usualSeconds;
}

/** The hosts that have not applied the last removal of a network. Null if unknown. */
export async function awaitPending(service: AdminService, network: Id, seconds: number): Promise<PendingHost[] | null> {
  try {
    return await service.readRemovals(network, seconds);
  } catch (error) {
    // The peer has left the map regardless.
    if (!(error instanceof CpnError)) throw error;
    warn(`the hosts that have applied it are unknown: ${error.message}`);
    return null;
  }
}

/** Names the hosts that may still reach a peer outside the map. */
export function notePending(pending: readonly PendingHost[] | null, now = new Date()): void {
  if (pending === null) return;
  if (pending.length === 0) {
    note('all hosts have applied it');
    return;
  }
  warn(
    `hosts that have not applied it: ${list(pending, now)}; they may still reach the peer, and a connector may relay it; check that "cpn run" runs there`,
  );
}

/** Names the hosts of a deleted network whose tunnels may still be up. */
export function noteDeletion(pending: readonly PendingHost[] | null, network: Id, now = new Date()): void {
  if (pending === null) return;
  if (pending.length === 0) {
    note('all hosts have taken their tunnel down');
    return;
  }
  const [older, others] = partition(pending, ({ deletion }) => deletion === 'unsupported');
  if (others.length > 0) {
    const ask = `cpn api GET /api/networks/${network}/removals`;
    warn(
      `hosts that have not taken their tunnel down: ${list(others, now)}; a host takes it down about 30 s after its first request, within 90 days; "${ask}" lists those that are left`,
    );
  }
  if (older.length > 0) {
    warn(
      `hosts whose version of cpn keeps the tunnel up: ${list(older, now)}; upgrade cpn there, or type "cpn leave" there`,
    );
  }
}

function list(hosts: readonly PendingHost[], now: Date): string {
  const names = hosts.slice(0, mostNames).map((host) => describeHost(host, now));
  return `${names.join(', ')}${hosts.length > names.length ? ` and ${hosts.length - names.length} more` : ''}`;
}

function partition<Item>(items: readonly Item[], belongs: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(belongs), items.filter((item) => !belongs(item))];
}

const mostNames = 20;

function describeHost({ name, last_seen, version }: PendingHost, now: Date): string {
  const age = last_seen === null ? null : Math.max(0, Math.round((now.getTime() - Date.parse(last_seen)) / 1000));
  const release = version == null ? '' : `, cpn ${printable(version)}`;
  return `${printable(name)} (${age === null ? 'no request lately' : `last request ${describeAge(age)}`}${release})`;
}
