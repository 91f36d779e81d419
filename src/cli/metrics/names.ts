import { printable } from '../../core/errors.ts';

/** The most peers, and the most routes, of a network that are told one by one: what is stored for each costs whoever stores it. */
export const mostTold = 500;

const longestName = 64;

/** A name of somebody else's making, as a label: short, and with nothing that a terminal would obey. */
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
