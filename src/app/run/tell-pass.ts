import type { Change } from '../../core/change.ts';
import type { Pass } from '../pass.ts';
import type { Log } from '../tools.ts';

/** Of a change as large as a network, a log needs no more than this. */
const mostTold = 20;

/** Tells the log what a pass changed, if it changed anything. */
export function tellPass(log: Log, link: string, { changes, isDrift }: Pass): void {
  if (changes.length === 0) return;
  const more = changes.length - mostTold;
  const told = changes.slice(0, mostTold).map(describe);
  const facts = { interface: link, changes: told, ...(more > 0 && { more }) };
  log.info(facts, isDrift ? 'drift repaired' : 'change applied');
}

function describe({ action, kind, target, reason }: Change): string {
  return `${action} ${kind} ${target}: ${reason}`;
}
