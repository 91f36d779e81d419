import type { OpenPort, PortState } from '../host-state/receipt.ts';
import { added, removed } from './change.ts';
import type { Step } from './step.ts';

/** The ports that a network needs open. */
interface PortRequest {
  readonly link: string;
  /** Null for none. */
  readonly port: number | null;
  /** The ports that cpn opened for this network before. */
  readonly ours: readonly OpenPort[];
  /** The firewall programs' states of this port, and of the ports that were opened before. */
  readonly states: readonly PortState[];
}

/** The steps to a port request. A port that is already open stays open, and is not ours. */
export interface PortPlan {
  readonly steps: readonly Step[];
  /** The ports that are ours from the first step on. They are recorded before that step. */
  readonly ours: readonly OpenPort[];
}

export function planPorts({ link, port, ours, states }: PortRequest): PortPlan {
  const here = states.filter(({ at }) => at.port === port);
  const opening = here.filter(({ is }) => is === 'closed').map(({ at }) => at);
  const found = here.filter(({ is }) => is === 'ours').map(({ at }) => at);
  const fresh = [...found, ...opening].filter((at) => !ours.some((each) => isSame(each, at)));
  // A port that is open in ufw without our comment is a user's now. firewalld has no comments, so a
  // port in it counts as ours.
  const replaced = states.filter(({ at, is }) => at.by === 'ufw' && is === 'open');
  const kept = ours.filter((at) => !replaced.some((each) => isSame(each.at, at)));
  const closing = kept.filter((at) => at.port !== port);
  const opened = opening.map((at): Step => {
    const change = added('firewall', nameOf(at), `${at.port}/udp`, 'others dial this port');
    return { do: 'open-port', link, at, changes: [change] };
  });
  const closed = closing.map((at): Step => {
    const change = removed('firewall', nameOf(at), `${at.port}/udp`, 'it was opened for this network alone');
    return { do: 'close-port', link, at, changes: [change] };
  });
  return { steps: [...opened, ...closed], ours: [...kept, ...fresh] };
}

/** The steps that close our ports. */
export function planClosing(link: string, ours: readonly OpenPort[]): readonly Step[] {
  return planPorts({ link, port: null, ours, states: [] }).steps;
}

/** Returns the ports without one that was closed, or that could not be opened. */
export function without(ports: readonly OpenPort[], gone: OpenPort): readonly OpenPort[] {
  return ports.filter((each) => !isSame(each, gone));
}

function nameOf({ by, zone, permanent }: OpenPort): string {
  return zone === null ? by : `${by} zone ${zone}, ${permanent ? 'permanent' : 'runtime'}`;
}

function isSame(one: OpenPort, other: OpenPort): boolean {
  return one.by === other.by && one.port === other.port && one.zone === other.zone && one.permanent === other.permanent;
}
