import type { Supervisor } from '../../host/supervisor.ts';

/** Reports twice within the watchdog's timeout that this process is alive, until the returned function is called. */
export function keepAlive(supervisor: Supervisor | null): () => void {
  const timeout = supervisor?.watchdogMs ?? null;
  if (supervisor === null || timeout === null) return () => {};
  const timer = setInterval(() => void supervisor.report({ isAlive: true }), timeout / 2);
  return () => clearInterval(timer);
}
