import type { Supervisor } from '../../host/supervisor.ts';

/** Says, twice within a supervisor's patience, that this process is alive, for as long as its event loop turns. */
export function startHeartbeat(supervisor: Supervisor | null): NodeJS.Timeout | undefined {
  if (supervisor === null || supervisor.watchdogMs === null) return undefined;
  return setInterval(() => void supervisor.report({ isAlive: true }), supervisor.watchdogMs / 2);
}
