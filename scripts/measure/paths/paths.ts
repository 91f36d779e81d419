import type { Comparison } from '../comparison.ts';
import { compareQuiet } from './quiet.ts';
import { compareReach } from './reach.ts';
import { compareSwitches } from './switches.ts';

/** Direct paths of hosts behind NAT: which pairs get one, and what switches and idle hosts cost. */
export async function comparePaths(rounds = 20): Promise<Comparison[]> {
  return [...(await compareReach()), ...(await compareSwitches(rounds)), ...(await compareQuiet())];
}
