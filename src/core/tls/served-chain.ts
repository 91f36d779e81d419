import { type Certificate, instant } from './certificate.ts';

const dayMs = 86_400_000;
/** Milliseconds before the end of a certificate at which warnings start. */
const usualNoticeMs = 14 * dayMs;

/** The reason why clients reject the certificate of a server, now or soon. */
export interface ChainWarning {
  readonly kind: 'expired' | 'expires-soon' | 'not-yet-valid' | 'no-intermediate';
  /** A clause whose subject is the certificate. */
  readonly problem: string;
  readonly remedy: string;
}

/** The certificate that expires first: clients need all of them. Null for an empty chain. */
export function findFirstToEnd(chain: readonly Certificate[]): Certificate | null {
  return chain.toSorted((one, other) => one.validTo - other.validTo)[0] ?? null;
}

/** Checks a chain's validity. `renew` is the remedy for an expiring certificate. */
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
  if (chain.every((certificate) => certificate.validTo - now > noticeOf(certificate))) return null;
  const days = Math.floor((first.validTo - now) / dayMs);
  const left = days === 1 ? '1 day' : `${days} days`;
  return { kind: 'expires-soon', problem: `${which}expires on ${instant(first.validTo)}, in ${left}`, remedy: renew };
}

/** ACME clients renew when a third of the lifetime is left. Some CAs issue for only a few days. */
function noticeOf({ validFrom, validTo }: Certificate): number {
  return Math.min(usualNoticeMs, (validTo - validFrom) / 3);
}

/** Finds the intermediate that a file lacks. `trusted`: the issuer is a root of this machine. */
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
