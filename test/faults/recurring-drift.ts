import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { plan, status } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import type { Process } from '../lab/process.ts';
import { expectUnharmed, repairs, type Scene } from './drift.ts';
import type { Member } from './drift-lab.ts';
import { injecting } from './record.ts';

/** Drift that a network manager makes again after each repair. */
export interface RecurringDrift {
  /** The command that prints events, until it is ended. */
  readonly monitor: string;
  /** For `sh`; fails when there is nothing to undo. */
  readonly command: string;
  /** Kind and target of the repair. */
  readonly target: string;
  /** True for rules that protect the host, which are repaired at once each time. */
  readonly isProtective?: boolean;
  /** True when all works again. */
  readonly works: () => Promise<boolean>;
}

const managerName = 'NetworkManager';
const warns = 'drift keeps coming back';

/** Repairs after the warning are at least 1 s and 2 s apart (src/core/reconcile/drift-damping.ts); without damping, half a second. */
const spaced = { repairs: 3, milliseconds: 2000 };

/** Has a network manager undo each repair; checks that repairs are spaced out, and go on until it ends. */
export function testRecurringDrift(number: number, scene: Scene, drift: RecurringDrift): Promise<void> {
  const { monitor, command, target, isProtective = false, works } = drift;
  const { kept, daemon } = scene;
  return injecting(number, async (row) => {
    const losses = await expectUnharmed(scene, async () => {
      const mark = daemon.mark();
      row.injected(`${command}, at every change`);
      const manager = await startManager(kept, monitor, command);
      const warning = await daemon.awaitLog('the warning', ({ msg }) => msg === warns, mark);
      row.detected();
      expect(warning.targets).toContain(target);
      expect(warning.suspects).toContainEqual(expect.stringMatching(`^${managerName} \\(pid \\d+\\)$`));
      const after = () => readTimes(manager).filter((time) => time > warning.time);
      await eventually('more repairs', () => after().length >= spaced.repairs, { timeoutMs: 60_000 });
      const [last = 0] = after().slice(spaced.repairs - 1);
      const took = isProtective ? Number.POSITIVE_INFINITY : last - warning.time;
      expect(took, 'milliseconds in which it was repaired').toBeGreaterThan(spaced.milliseconds);
      const count = (message: string) => daemon.since(mark).filter(({ msg }) => msg === message).length;
      expect(count(warns)).toBe(1);
      expect(count('reconciliation succeeds again')).toBeLessThanOrEqual(count(repairs));
      const { warnings } = await status(kept.host);
      const how = isProtective ? 'is repaired at once each time' : 'further repairs are delayed';
      const expected = new RegExp(`^${target} was repaired \\d+ times .* ${how}; perhaps by ${managerName}`);
      expect(warnings).toContainEqual(expect.stringMatching(expected));
      await stopManager(kept);
      const isRight = async () => (await plan(kept.host)).exitCode === 0 && (await works());
      await eventually('all works again', isRight, { timeoutMs: 60_000 });
      row.repaired();
    });
    row.lost(losses);
  });
}

/**
 * Runs a program with the name of a network manager, which prints the time, in nanoseconds, whenever it has undone
 * something. Without its file it undoes nothing any more; it ends in two minutes at the latest.
 */
async function startManager({ host }: Member, monitor: string, command: string): Promise<Process> {
  const program = join(host.folder, managerName);
  const events = `{ echo begin; exec timeout 120 ${monitor}; }`;
  const undo = `[ -e "$0" ] || exit; { ${command}; } 2>/dev/null && date +%s%N`;
  await writeFile(program, `#!/bin/sh\n${events} | while read -r event; do ${undo}; done\n`, { mode: 0o755 });
  return host.spawn([program]);
}

function stopManager({ host }: Member): Promise<void> {
  return rm(join(host.folder, managerName));
}

/** When it has undone something, in milliseconds since the epoch. */
function readTimes(manager: Process): number[] {
  return (manager.output.stdout.match(/^\d+$/gm) ?? []).map((time) => Number(time) / 1e6);
}
