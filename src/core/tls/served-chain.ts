import { type Certificate, instant } from './certificate.ts';

/** Days before the end of a certificate when warnings begin. Clients of ACME renew 30 days before. */
const warningDays = 14;
const dayMs = 86_400_000;

/** What keeps clients of a server from accepting its certificate, now or soon. */
export interface ChainWarning {
  readonly kind: 'expired' | 'expires-soon' | 'not-yet-valid' | 'no-intermediate';
  /** A clause whose subject is the certificate. */
  readonly problem: string;
  readonly remedy: string;
}

/** The certificate of a chain that ends first; null for an empty chain. Clients need all of them. */
export function findFirstToEnd(chain: readonly Certificate[]): Certificate | null {
  return chain.toSorted((one, other) => one.validTo - other.validTo)[0] ?? null;
}

/**
 * Judges the validity of a chain.
 *
 * @param renew the remedy for a certificate that ends
 */
export function judgeValidity(chain: readonly Certificate[], now: number, renew: string): ChainWarning | null {
  const first = findFirstToEnd(chain);
  if (first === null) return null;
  const which = chain.indexOf(first) === 0 ? '' : `of the issuer "${first.subject}" `;
  const pending = chain.find(({ validFrom }) => validFrom > now);
  if (first.validTo <= now)
    return { kind: 'expired', problem: `${which}expired on ${instant(first.validTo)}`, remedy: renew };
  if (pending !== undefined) {
    const remedy = 'correct the clock with "timedatectl set-ntp true", or use the certificate from then on';
    return { kind: 'not-yet-valid', problem: `is valid from ${instant(pending.validFrom)}`, remedy };
  }
  const days = Math.floor((first.validTo - now) / dayMs);
  if (first.validTo - now > warningDays * dayMs) return null;
  const left = days === 1 ? '1 day' : `${days} days`;
  return { kind: 'expires-soon', problem: `${which}expires on ${instant(first.validTo)}, in ${left}`, remedy: renew };
}

/**
 * Finds the intermediate certificate that a file lacks. A certificate whose issuer is a root needs none.
 *
 * @param trusted true where the issuer of the certificate is a root that this machine trusts
 */
export function judgeIntermediates([leaf, ...issuers]: readonly Certificate[], trusted: boolean): ChainWarning | null {
  if (leaf === undefined || leaf.isSelfIssued || trusted) return null;
  if (issuers.some(({ subject }) => subject === leaf.issuer)) return null;
  const issuer = `"${leaf.issuer}"`;
  return {
    kind: 'no-intermediate',
    problem: `is sent without the certificate of ${issuer}, which issued it`,
    remedy: `append the certificate of ${issuer} to the file (ACME clients call that file fullchain.pem), unless hosts trust ${issuer} itself`,
  };
}
