import { findDetours, withoutSubnets } from '../routing/bypass-route.ts';
import type { ExaminedNetwork } from './check-network.ts';
import { type Finding, okFinding, problemFinding } from './finding.ts';

/** Judges whether more specific routes of others, such as those of DHCP, take a part of what should lead into the tunnel. */
export function checkDetours({ map, enabled, desired, actual }: ExaminedNetwork): Finding[] {
  if (!enabled) return [];
  const { link } = desired;
  const looked = `routes that lead past ${link}`;
  const taken = desired.report.filter(({ state }) => state === 'taken').map(({ prefix }) => prefix);
  const detours = findDetours([map.cidr, ...taken], actual, withoutSubnets(actual.surroundings));
  if (detours.size === 0) return [okFinding('network', looked, 'none')];
  return [...detours].map(([prefix, detour]) => {
    const found = `${detour.prefix} of ${prefix} leads to ${detour.link}`;
    return problemFinding(
      'network',
      looked,
      found,
      `ip route delete ${detour.prefix} dev ${detour.link}, unless it is meant to be`,
    );
  });
}
