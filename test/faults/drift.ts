import { expect } from 'vitest';
import { plan } from '../e2e/office.ts';
import type { Daemon, LogLine, Mark } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Member } from './drift-lab.ts';
import { injecting } from './record.ts';
import { whilePinging } from './while-pinging.ts';

/** The daemon's messages for a change: a repair, or an update of the map. */
export const repairs = 'drift repaired';
export const applies = 'change applied';

/** A change that another program makes on a host, and the repair that the daemon must make. */
export interface Drift {
  /** A short description, for the row. */
  readonly how: string;
  /** What does it, for `sh` on the host. */
  readonly script: string;
  /** The changes that repair it, as the log has them, in order: nothing else is done. */
  readonly changes: readonly string[];
  /** True when all works again. */
  readonly works: () => Promise<boolean>;
  /** The fault itself ends every tunnel of the interface: then none is watched. */
  readonly hitsAll?: boolean;
}

/** Where it happens. */
export interface Scene {
  readonly kept: Member;
  readonly daemon: Daemon;
  readonly untouched: Member;
}

/** Injects a drift as fault `number`, and proves that the daemon repairs it in one go, and touches nothing else. */
export function repairing(number: number, scene: Scene, drift: Drift): Promise<void> {
  const { kept, daemon } = scene;
  const { how, script, changes, works, hitsAll = false } = drift;
  return injecting(number, async (row) => {
    const repair = async () => {
      const mark = daemon.mark();
      row.injected(hitsAll ? `${how} (ends all tunnels)` : how);
      await kept.host.exec(['sh', '-c', script]);
      const line = await daemon.awaitLog('the repair', ({ msg }) => msg === repairs, mark);
      row.detected();
      expect(line.changes).toEqual(changes);
      await eventually('all works again', works);
      row.repaired();
      expect(await plan(kept.host)).toEqual({ exitCode: 0, changes: [] });
      expect(findActs(daemon, mark)).toEqual([line]);
    };
    if (hitsAll) return repair();
    const losses = await expectUnharmed(scene, repair);
    row.lost(losses);
  });
}

/** Runs `work`, and checks that the untouched tunnel lost nothing meanwhile, and kept its session. */
export async function expectUnharmed({ kept, untouched }: Scene, work: () => Promise<void>) {
  const { address, public_key } = untouched.joined;
  const losses = await whilePinging(kept.host, address, work, [public_key]);
  expect(losses.lost, `packets lost of ${losses.sent}`).toBe(0);
  return losses;
}

/** What the daemon changed since a mark, and its warnings. */
export function findActs(daemon: Daemon, mark: Mark): LogLine[] {
  return daemon.since(mark).filter(({ msg, level }) => level >= 40 || msg === repairs || msg === applies);
}
