import type { Comparison } from '../comparison.ts';
import { compareChanges } from './changes.ts';
import { compareElements } from './elements.ts';
import { comparePacketFilters } from './packets.ts';
import { compareRequests } from './requests.ts';
import { compareRevocations } from './revocations.ts';
import { compareThroughput } from './throughput.ts';

/**
 * The rules of closed networks: at hosts, and at the control plane.
 * @param rounds how often rules are taken away from running flows
 */
export async function compareRules(rounds?: number): Promise<Comparison[]> {
  return [
    ...(await compareThroughput()),
    ...(await compareRevocations(rounds)),
    ...(await compareChanges()),
    ...(await compareRequests()),
    ...(await compareElements()),
    ...(await comparePacketFilters()),
  ];
}
