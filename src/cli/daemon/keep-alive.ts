import type { Supervisor } from '../../host/supervisor.ts';

/** Resets the watchdog twice per timeout, until the caller calls the returned function. */
export function keepAlive(supervisor: Supervisor | null): () => void {
  const timeout = supervisor?.watchdogMs ?? null;
  if (supervisor === null || timeout === null) return () => {};
  const timer = setInterval(() => void supervisor.report({ isAlive: true }), timeout / 2);
  return () => clearInterval(timer);
}
