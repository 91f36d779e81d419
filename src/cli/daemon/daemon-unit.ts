import { stat } from 'node:fs/promises';
import { CpnError } from '../../core/errors/index.ts';
import type { DaemonUnit, Supervisor } from '../../host/supervisor.ts';
import type { HostStore } from '../../store/store.ts';
import { openUnit } from '../context.ts';
import type { Input } from '../input/input.ts';
import { usualJoinFile } from '../input/join-file.ts';
import { note, warn } from '../output/output.ts';

/** Starts the unit, if any, now and at boot. A failure does not fail the join: returns false. */
export async function enableDaemon(input: Input, open = openUnit): Promise<boolean> {
  return withUnit(
    () => open(input),
    async (unit) => {
      await unit.enable();
      note(`${unit.name} is started and enabled at boot; it reconciles the network (skip with --no-enable)`);
    },
  );
}

/** Stops and disables the daemon if no network is left. Prints the result. */
export async function disableIdleDaemon(
  input: Input,
  store: Pick<HostStore, 'list'>,
  open = openUnit,
  joinFile = usualJoinFile,
): Promise<void> {
  const { states, unreadable } = await store.list();
  if (states.length + unreadable.length > 0) return;
  await withUnit(
    () => open(input),
    async (unit) => {
      if (unit.isEnabled) {
        await unit.disable();
        note(`${unit.name} is stopped and disabled: no network is left`);
      }
      const file = await stat(joinFile).catch(() => null);
      if (file !== null)
        warn(`${joinFile} still exists: this host joins again at the next boot; remove it to prevent that`);
    },
  );
}

/** Returns true if the unit exists and the work succeeded. */
async function withUnit(
  open: () => Promise<DaemonUnit | null>,
  work: (unit: DaemonUnit) => Promise<void>,
): Promise<boolean> {
  try {
    const unit = await open();
    if (unit !== null) await work(unit);
    return unit !== null;
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    warn(error.message);
    return false;
  }
}

/** Resets the watchdog twice per timeout, until the caller calls the returned function. */
export function keepAlive(supervisor: Supervisor | null): () => void {
  const timeout = supervisor?.watchdogMs ?? null;
  if (supervisor === null || timeout === null) return () => {};
  const timer = setInterval(() => void supervisor.report({ isAlive: true }), timeout / 2);
  return () => clearInterval(timer);
}
