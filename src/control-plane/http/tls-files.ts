import { createPrivateKey, X509Certificate } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { getCACertificates } from 'node:tls';
import { WrongUsage } from '../../core/errors/index.ts';
import { type Certificate, readCertificateFile } from '../../core/tls/certificate.ts';
import { UnusableFile } from '../errors.ts';

/** The paths of a certificate chain and its private key, both in PEM. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

export interface TlsIdentity {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly served: ServedCertificate;
}

export interface ServedCertificate {
  readonly file: string;
  /** In the order of the file. */
  readonly chain: readonly Certificate[];
  /** True if Node or this host trusts the issuer of the first certificate as a root. */
  readonly isIssuerTrusted: boolean;
}

/** Reads both files. Refuses a key that others can read, and files that do not match. */
export function readTlsFiles(files: TlsFiles): TlsIdentity {
  const cert = read(files.certificate, '--tls-cert').content;
  const { content: key, stats } = read(files.key, '--tls-key');
  if (isOpen(stats)) {
    const mode = (stats.mode & 0o777).toString(8).padStart(4, '0');
    throw new UnusableFile(files.key, `can be read by others (mode ${mode})`, `type: chmod 600 ${files.key}`);
  }
  const certificate = parse(() => new X509Certificate(cert), files.certificate, ...noCertificate);
  if (!certificate.checkPrivateKey(parse(() => createPrivateKey(key), files.key, ...noKey))) {
    const problem = `is not the key of ${files.certificate}`;
    throw new UnusableFile(files.key, problem, 'give the two that were made together');
  }
  const chain = readCertificateFile(cert.toString('latin1'));
  return { cert, key, served: { file: files.certificate, chain, isIssuerTrusted: isIssuedByRoot(certificate) } };
}

/** The chain that is now in the file, which may differ from the served one; empty if unreadable. */
export function readChainOnDisk(file: string): Certificate[] {
  try {
    return readCertificateFile(readFileSync(file, 'latin1'));
  } catch {
    return [];
  }
}

function isIssuedByRoot(certificate: X509Certificate): boolean {
  const isIssuer = (root: string) => certificate.checkIssued(new X509Certificate(root));
  return getCACertificates('default').some(isIssuer) || getCACertificates('system').some(isIssuer);
}

/** Reads a file, and the mode of the same open file. */
function read(path: string, flag: string): { content: Buffer; stats: Stats } {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    return { content: readFileSync(file), stats: fstatSync(file) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongUsage(`${flag} ${path} cannot be read (${code}); check the path and its permissions`);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Like PostgreSQL: the group may read a key of root, as for Debian's group ssl-cert. */
function isOpen({ mode, uid }: Stats): boolean {
  return (mode & (uid === 0 ? 0o027 : 0o077)) !== 0;
}

function parse<Parsed>(work: () => Parsed, path: string, problem: string, remedy: string): Parsed {
  try {
    return work();
  } catch (error) {
    throw new UnusableFile(path, problem, remedy, { cause: error });
  }
}

const noCertificate = [
  'holds no certificate in PEM',
  'give the certificate, with those between it and the root after it',
] as const;
const noKey = ['holds no private key in PEM that can be used without a passphrase', 'give one'] as const;
