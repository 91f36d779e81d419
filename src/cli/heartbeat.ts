import type { Supervisor } from '../host/supervisor.ts';

/** Says, twice within a supervisor's patience, that this process is alive, for as long as its event loop turns. */
export function startHeartbeat(supervisor: Supervisor | null): NodeJS.Timeout | undefined {
  if (supervisor === null || supervisor.patienceMs === null) return undefined;
  return setInterval(() => void supervisor.tell({ isAlive: true }), supervisor.patienceMs / 2);
}
