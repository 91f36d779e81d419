import { type Certificate, instant } from '../tls/certificate.ts';
import { judgeValidity } from '../tls/served-chain.ts';
import { type Finding, okFinding, problemFinding } from './finding.ts';

/** Checks the CAs of `--ca-file` for the network on `link`. `now` is in seconds since the epoch. */
export function checkAuthorities(link: string, authorities: readonly Certificate[], now: number): Finding[] {
  return authorities.map((authority) => {
    const checked = `the CA "${authority.subject}" of ${link}`;
    const found = judgeValidity([authority], now * 1000, `cpn set ${link} --ca-file FILE, with its successor too`);
    return found === null
      ? okFinding(
          'api',
          checked,
          `is the only CA accepted for the control plane; it expires on ${instant(authority.validTo)}`,
        )
      : problemFinding('api', checked, found.problem, found.remedy);
  });
}

/** Checks how long an accepted certificate stays valid. `now` is in seconds since the epoch. */
export function checkServiceCertificate(url: string, chain: readonly Certificate[], now: number): Finding[] {
  const found = judgeValidity(chain, now * 1000, renew);
  return found === null ? [] : [problemFinding('api', `the TLS certificate of ${url}`, found.problem, found.remedy)];
}

const renew =
  'ask the operator of the control plane to renew it; otherwise the tunnel stays up, but receives no changes after that';
