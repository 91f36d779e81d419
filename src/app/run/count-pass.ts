import type { Meter, PassOutcome } from '../meter.ts';
import type { Pass } from '../pass.ts';

/** Counts a pass that came to its end, and what it changed. */
export function countPass(meter: Meter, link: string, pass: Pass, seconds: number): void {
  meter.passed(link, outcomeOf(pass), seconds);
  meter.changed(link, pass.changes, pass.isDrift);
}

function outcomeOf({ survey, changes, isDrift }: Pass): PassOutcome {
  if (changes.length > 0) return isDrift ? 'repaired' : 'changed';
  return survey !== null && survey.changes.length > 0 ? 'postponed' : 'steady';
}
