import { stat } from 'node:fs/promises';
import { CpnError } from '../../core/errors/index.ts';
import type { DaemonUnit } from '../../host/supervisor.ts';
import type { HostStore } from '../../store/store.ts';
import { openUnit } from '../context.ts';
import type { Input } from '../input/input.ts';
import { usualJoinFile } from '../input/join-file.ts';
import { note, warn } from '../output/output.ts';

/**
 * Has the daemon start with this host, and now, where it is installed as a unit, and says so. A join is none the worse when that
 * fails. Returns whether it keeps the network right from now on.
 */
export async function enableDaemon(input: Input): Promise<boolean> {
  return withUnit(input, async (unit) => {
    await unit.enable();
    note(`${unit.name} is started and enabled at boot; it reconciles the network (skip with --no-enable)`);
  });
}

/** Ends the daemon for good where no network is left to keep, and says so. */
export async function disableIdleDaemon(input: Input, store: HostStore): Promise<void> {
  const { states, unreadable } = await store.list();
  if (states.length + unreadable.length > 0) return;
  await withUnit(input, async (unit) => {
    if (unit.isEnabled) {
      await unit.disable();
      note(`${unit.name} is stopped and disabled: no network is left`);
    }
    const file = await stat(usualJoinFile).catch(() => null);
    if (file !== null)
      warn(`${usualJoinFile} still exists: this host joins again at the next boot; remove it to prevent that`);
  });
}

/** Returns whether there is one, and the work with it was done. */
async function withUnit(input: Input, work: (unit: DaemonUnit) => Promise<void>): Promise<boolean> {
  try {
    const unit = await openUnit(input);
    if (unit !== null) await work(unit);
    return unit !== null;
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    warn(error.message);
    return false;
  }
}
