import type { Logger } from 'pino';
import { type ChainWarning, findFirstToEnd, judgeIntermediates, judgeValidity } from '../core/tls/served-chain.ts';
import { readChainOnDisk, type ServedCertificate } from './http/tls-files.ts';

const dayMs = 86_400_000;

/** Warns of certificates that clients will soon not accept: at start, after reloads, and daily. */
export interface CertificateWatch {
  onReload(): void;
  stop(): void;
}

export function watchCertificate(
  certificate: () => ServedCertificate | null,
  now: () => Date,
  log: Pick<Logger, 'warn'>,
  everyMs = dayMs,
): CertificateWatch {
  const warn = (found: ChainWarning | null) => {
    const served = certificate();
    if (found === null || served === null) return;
    const { problem, remedy } = found;
    const expiresAt = findFirstToEnd(served.chain)?.validTo ?? null;
    const expires = expiresAt === null ? null : new Date(expiresAt).toISOString();
    log.warn({ certificate: served.file, problem, expires, remedy }, messages[found.kind]);
  };
  const judgeNow = () => {
    const served = certificate();
    if (served === null) return;
    const [used, stored] = [served.chain, readChainOnDisk(served.file)].map((chain) => findFirstToEnd(chain)?.validTo);
    const isRenewed = (stored ?? 0) > (used ?? 0);
    warn(judgeValidity(served.chain, now().getTime(), isRenewed ? reload : renew));
  };
  const judgeAll = () => {
    const served = certificate();
    judgeNow();
    if (served !== null) warn(judgeIntermediates(served.chain, served.isIssuerTrusted));
  };
  judgeAll();
  const timer = setInterval(judgeNow, everyMs);
  timer.unref();
  return { onReload: judgeAll, stop: () => clearInterval(timer) };
}

/** systemd copies credentials when it starts a unit, so a reload does not see new files. */
const how = 'systemctl reload cpn-control-plane (or SIGHUP; restart it where the files are credentials of the unit)';
const renew = `replace the files of --tls-cert and --tls-key, then: ${how}`;
const reload = `the file has a certificate that ends later, which is not in use yet: ${how}`;

const messages: Readonly<Record<ChainWarning['kind'], string>> = {
  expired: 'TLS certificate has expired',
  'expires-soon': 'TLS certificate expires soon',
  'not-yet-valid': 'TLS certificate is not yet valid',
  'no-intermediate': 'TLS certificate lacks its intermediate certificate',
};
