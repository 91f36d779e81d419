import type { Address, Prefix } from '../net/cidr.ts';
import { type Finding, okFinding, problemFinding } from './finding.ts';

/** A resolver in an accepted route that is kept outside the tunnel. */
export interface KeptResolver {
  readonly address: Address;
  readonly route: Prefix;
  readonly answers: boolean;
}

/**
 * Checks whether resolvers that are kept outside answer there. A resolver behind the network's
 * connector does not.
 */
export function checkKeptResolvers(link: string, resolvers: readonly KeptResolver[]): Finding[] {
  return resolvers.map(({ address, route, answers }) => {
    const checked = `the resolver ${address}, which stays outside the tunnel`;
    if (answers) return okFinding('dns', checked, 'answers');
    const remedy = `cpn set ${link} --allow-route ${route}, if the resolver is behind the connector of that route`;
    return problemFinding('dns', checked, 'does not answer there', remedy);
  });
}
