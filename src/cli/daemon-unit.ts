import { stat } from 'node:fs/promises';
import { CpnError } from '../core/errors.ts';
import type { DaemonUnit } from '../host/supervisor.ts';
import type { Store } from '../store/store.ts';
import { openUnit } from './context.ts';
import type { Input } from './input.ts';
import { usualJoinFile } from './join-file.ts';
import { note, warn } from './output.ts';

/**
 * Has the daemon start with this host, and now, where it is installed as a unit, and says so. A join is none the worse when that
 * fails. Returns whether it keeps the network right from now on.
 */
export async function enableDaemon(input: Input): Promise<boolean> {
  return withUnit(input, async (unit) => {
    await unit.enable();
    note(
      `${unit.name} keeps it right from now on, also after a restart of this host; "--no-enable" leaves it as it is`,
    );
  });
}

/** Ends the daemon for good where no network is left to keep, and says so. */
export async function disableIdleDaemon(input: Input, store: Store): Promise<void> {
  const { states, unreadable } = await store.list();
  if (states.length + unreadable.length > 0) return;
  await withUnit(input, async (unit) => {
    if (unit.isEnabled) {
      await unit.disable();
      note(`${unit.name} is stopped and disabled, as no network is left to keep`);
    }
    const file = await stat(usualJoinFile).catch(() => null);
    if (file !== null)
      warn(`${usualJoinFile} is still there, with which this host joins again when it starts; remove it`);
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
