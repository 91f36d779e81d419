import { CpnError } from '../../core/errors.ts';
import { type Run, run as runHere } from '../run.ts';
import type { Report, Supervisor } from '../supervisor.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The service manager that started this process, which it tells by NOTIFY_SOCKET and WATCHDOG_USEC (sd_notify(3),
 * sd_watchdog_enabled(3)); null where none waits for word. Node has no datagram sockets of that kind: a report is a run of
 * systemd-notify, which the unit has to let through with NotifyAccess=all.
 *
 * @param onTrouble is told, once, what keeps reports from arriving
 */
export function systemdSupervisor(
  environment: Environment,
  onTrouble: (error: CpnError) => void,
  run: Run = runHere,
  pid = process.pid,
): Supervisor | null {
  const socket = environment.NOTIFY_SOCKET;
  // A path, or in the abstract namespace a name after an @.
  if (socket === undefined || !/^[/@][^\0]/.test(socket)) return null;
  let isTroubled = false;
  let turn: Promise<void> = Promise.resolve();
  const send = async (report: Report) => {
    try {
      await run('systemd-notify', render(report), { environment: { NOTIFY_SOCKET: socket }, deadlineMs });
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      if (!isTroubled) onTrouble(error);
      isTroubled = true;
    }
  };
  return {
    patienceMs: readPatience(environment, pid),
    tell(report) {
      turn = turn.then(() => send(report));
      return turn;
    },
  };
}

/** systemd-notify itself waits up to 5 s for its message to be taken. */
const deadlineMs = 8_000;

/** The words of systemd-notify(1). Its own flags for the states are younger than Debian 12. */
function render({ state, isAlive = false, status }: Report): string[] {
  const now = process.hrtime.bigint() / 1000n;
  return [
    ...(state === 'ready' ? ['READY=1'] : []),
    // The time is for units of Type=notify-reload.
    ...(state === 'reloading' ? ['RELOADING=1', `MONOTONIC_USEC=${now}`] : []),
    ...(state === 'stopping' ? ['STOPPING=1'] : []),
    ...(isAlive ? ['WATCHDOG=1'] : []),
    ...(status === undefined ? [] : [`STATUS=${status}`]),
  ];
}

function readPatience({ WATCHDOG_USEC = '', WATCHDOG_PID }: Environment, pid: number): number | null {
  // Inherited from somebody who is watched.
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(pid)) return null;
  return /^[1-9][0-9]{0,17}$/.test(WATCHDOG_USEC) ? Number(WATCHDOG_USEC) / 1000 : null;
}
