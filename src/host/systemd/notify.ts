import { CpnError } from '../../core/errors/index.ts';
import { toolFolders } from '../process/find-tool.ts';
import { type Run, runFrom } from '../process/run.ts';
import type { Supervisor, SupervisorReport } from '../supervisor.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The systemd that started this process, from NOTIFY_SOCKET and WATCHDOG_USEC (sd_notify(3),
 * sd_watchdog_enabled(3)). Null without them. Node has no Unix datagram sockets, so each report
 * runs systemd-notify, for which the unit needs NotifyAccess=all.
 *
 * @param onError called for the first report that fails
 */
export function systemdSupervisor(
  environment: Environment,
  onError: (error: CpnError) => void,
  runWith: (environment: Readonly<Record<string, string>>) => Run = (variables) => runFrom(toolFolders, variables),
  pid = process.pid,
): Supervisor | null {
  const socket = environment.NOTIFY_SOCKET;
  // A path, or an @ and a name in the abstract namespace.
  if (socket === undefined || !/^[/@][^\0]/.test(socket)) return null;
  const run = runWith({ NOTIFY_SOCKET: socket });
  let hasFailed = false;
  let last: Promise<void> = Promise.resolve();
  const send = async (report: SupervisorReport) => {
    try {
      await run('systemd-notify', render(report), { deadlineMs });
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      if (!hasFailed) onError(error);
      hasFailed = true;
    }
  };
  return {
    watchdogMs: readWatchdog(environment, pid),
    report(report) {
      last = last.then(() => send(report));
      return last;
    },
  };
}

/** systemd-notify waits up to 5 s until systemd receives its message. */
const deadlineMs = 8_000;

/** Assignments of systemd-notify(1). Debian 12 has no flags for some of the states. */
function render({ state, isAlive = false, status }: SupervisorReport): string[] {
  const now = process.hrtime.bigint() / 1000n;
  return [
    ...(state === 'ready' ? ['READY=1'] : []),
    // Units of Type=notify-reload need the time.
    ...(state === 'reloading' ? ['RELOADING=1', `MONOTONIC_USEC=${now}`] : []),
    ...(state === 'stopping' ? ['STOPPING=1'] : []),
    ...(isAlive ? ['WATCHDOG=1'] : []),
    ...(status === undefined ? [] : [`STATUS=${status}`]),
  ];
}

function readWatchdog({ WATCHDOG_USEC = '', WATCHDOG_PID }: Environment, pid: number): number | null {
  // The variable was inherited: systemd watches another process.
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(pid)) return null;
  return /^[1-9][0-9]{0,17}$/.test(WATCHDOG_USEC) ? Number(WATCHDOG_USEC) / 1000 : null;
}
