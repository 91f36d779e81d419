import { printable } from '../../../core/errors/index.ts';

/** Peers, and routes, of a network that have metrics of their own: each costs the metrics store memory. */
export const maxReported = 500;

const longestName = 64;

/** A name from the network as a label: short, and without control characters. */
export function labelOf(name: string): string {
  return printable([...name].slice(0, longestName).join(''));
}

/** The state that holds has the value 1, each other one 0, so that none of them is missing. */
export function flagsOf<State extends string>(states: readonly State[], current: State | null): [State, number][] {
  return states.map((state) => [state, state === current ? 1 : 0]);
}

/** Seconds since the epoch. */
export function secondsOf(time: string): number {
  return Date.parse(time) / 1000;
}
