import { printable } from '../../../core/errors/index.ts';

/**
 * The maximum number of peers, and of routes, with separate metrics per network: each costs the
 * metrics store memory.
 */
export const maxReported = 500;

const longestName = 64;

/** A name from the network as a label value: short, and without control characters. */
export function labelOf(name: string): string {
  return printable([...name].slice(0, longestName).join(''));
}

/** 1 for the current state and 0 for every other, so that no state is missing. */
export function flagsOf<State extends string>(states: readonly State[], current: State | null): [State, number][] {
  return states.map((state) => [state, state === current ? 1 : 0]);
}

/** Seconds since the epoch. */
export function secondsOf(time: string): number {
  return Date.parse(time) / 1000;
}
