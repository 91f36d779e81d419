import { expect } from 'vitest';
import { plan } from '../e2e/office.ts';
import type { Daemon, LogLine, Mark } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Member } from './drift-lab.ts';
import { injecting } from './record.ts';
import { whilePinging } from './while-pinging.ts';

/** What the daemon says when it changed something: of its own accord, or because there was news. */
export const repairs = 'drift repaired';
export const applies = 'change applied';

/** Something that somebody else does to a host, and what the daemon is to make of it. */
export interface Drift {
  /** In a few words, for the row. */
  readonly how: string;
  /** What does it, for `sh` on the host. */
  readonly script: string;
  /** The changes that repair it, in the words of the log and their order: nothing else is done. */
  readonly changes: readonly string[];
  /** Tells whether all works again. */
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
      await eventually('all works again', works, { timeoutMs: 30_000 });
      row.repaired();
      expect(await plan(kept.host)).toEqual({ exitCode: 0, changes: [] });
      expect(findActs(daemon, mark)).toEqual([line]);
    };
    if (hitsAll) return repair();
    const losses = await sparing(scene, repair);
    row.lost(losses);
  });
}

/** Runs `work`, and proves that the untouched tunnel lost nothing meanwhile, and that nobody touched its session. */
export async function sparing({ kept, untouched }: Scene, work: () => Promise<void>) {
  const { address, public_key } = untouched.joined;
  const losses = await whilePinging(kept.host, address, work, [public_key]);
  expect(losses.lost, `packets lost of ${losses.sent}`).toBe(0);
  return losses;
}

/** What the daemon did since a mark, and what troubled it. */
export function findActs(daemon: Daemon, mark: Mark): LogLine[] {
  return daemon.since(mark).filter(({ msg, level }) => level >= 40 || msg === repairs || msg === applies);
}
