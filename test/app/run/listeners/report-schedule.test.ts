import { expect, it } from 'vitest';
import { onNew, ReportSchedule } from '../../../../src/app/run/listeners/report-schedule.ts';
import { Unreachable } from '../../../../src/core/errors/index.ts';
import { emptyReport } from '../../../../src/core/health/report/compose-report.ts';

const gone = new Unreachable('https://x', 'gone', { delivered: false, heard: false, retryAfterMs: 900_000 });
const at = (now: number) => ({ now, pauses: onNew, isAway: false, isListed: () => true });

it('a reset ends the pause of a failed report, and the next failure counts as the first one', () => {
  const schedule = new ReportSchedule();
  expect([1, 2, 3].map(() => schedule.noteFailure(gone, 100))).toEqual([1, 2, 3]);
  expect(schedule.findDue(emptyReport, at(999))).toBeNull();
  schedule.reset();
  expect(schedule.findDue(emptyReport, at(101))).toMatchObject({ complete: true });
  expect(schedule.noteFailure(gone, 102)).toBe(1);
});
