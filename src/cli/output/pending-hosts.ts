import type { AdminService, PendingHost } from '../../api/service.ts';
import { CpnError, printable } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { describeAge } from '../../core/util/age.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';

import { note, warn } from './output.ts';

const usualSeconds = 10;
/** The contract's longest wait. */
const maxSeconds = 60;

/** How long a command waits until hosts have applied what it removes. */
export const pendingFlags: Flags = {
  wait: {
    kind: 'text',
    value: 'SECONDS',
    summary: 'time for the hosts to apply it, 0 to 60',
    byDefault: String(usualSeconds),
  },
};

/** The seconds that `--wait` gives. @throws WrongUsage */
export function readPatience(input: Input): number {
  return input.number('wait', 0, maxSeconds) ?? usualSeconds;
}

/** The hosts that have not applied the last removal of a network; null where that is not known. */
export async function awaitPending(service: AdminService, network: Id, seconds: number): Promise<PendingHost[] | null> {
  try {
    return await service.readRemovals(network, seconds);
  } catch (error) {
    // The peer is out of the map all the same.
    if (!(error instanceof CpnError)) throw error;
    warn(`which hosts have applied it is not known: ${error.message}`);
    return null;
  }
}

/** Names the hosts that may still reach a peer which is out of the map. */
export function notePending(pending: readonly PendingHost[] | null, now = new Date()): void {
  if (pending === null) return;
  if (pending.length === 0) {
    note('all hosts have applied it');
    return;
  }
  const names = pending.slice(0, mostNames).map((host) => describeHost(host, now));
  const more = pending.length > names.length ? ` and ${pending.length - names.length} more` : '';
  warn(
    `hosts that have not applied it: ${names.join(', ')}${more}; they may still reach the peer, and a connector may relay it; check that "cpn run" runs there`,
  );
}

const mostNames = 20;

function describeHost({ name, last_seen }: PendingHost, now: Date): string {
  const age = last_seen === null ? null : Math.max(0, Math.round((now.getTime() - Date.parse(last_seen)) / 1000));
  return `${printable(name)} (${age === null ? 'no request lately' : `last request ${describeAge(age)}`})`;
}
