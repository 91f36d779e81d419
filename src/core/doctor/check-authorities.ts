import { type Certificate, instant } from '../tls/certificate.ts';
import { judgeValidity } from '../tls/served-chain.ts';
import { type Finding, okFinding, problemFinding } from './finding.ts';

/**
 * Checks the CAs of `--ca-file`.
 *
 * @param link the interface of the network that uses these CAs for its control plane
 * @param now seconds since the epoch
 */
export function checkAuthorities(link: string, authorities: readonly Certificate[], now: number): Finding[] {
  return authorities.map((authority) => {
    const checked = `the CA "${authority.subject}" of ${link}`;
    const found = judgeValidity([authority], now * 1000, `cpn set ${link} --ca-file FILE, with its successor too`);
    return found === null
      ? okFinding('api', checked, `is accepted alone for the control plane, until ${instant(authority.validTo)}`)
      : problemFinding('api', checked, found.problem, found.remedy);
  });
}
