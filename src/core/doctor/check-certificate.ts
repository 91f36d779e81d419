import type { Certificate } from '../tls/certificate.ts';
import { judgeValidity } from '../tls/served-chain.ts';
import { type Finding, problemFinding } from './finding.ts';

/**
 * Checks how long a certificate that is now accepted stays valid.
 *
 * @param now seconds since the epoch
 */
export function checkServiceCertificate(url: string, chain: readonly Certificate[], now: number): Finding[] {
  const found = judgeValidity(chain, now * 1000, renew);
  return found === null ? [] : [problemFinding('api', `the TLS certificate of ${url}`, found.problem, found.remedy)];
}

const renew =
  'let the operator of the control plane renew it; without that the tunnel stays up, but receives no change from then on';
