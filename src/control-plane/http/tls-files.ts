import { createPrivateKey, X509Certificate } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { getCACertificates } from 'node:tls';
import { WrongUsage } from '../../core/errors/index.ts';
import { type Certificate, readCertificateFile } from '../../core/tls/certificate.ts';
import { UnusableFile } from '../errors.ts';

/** Where a certificate chain and its private key are, both in PEM. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

/** What a TLS server needs of them. */
export interface TlsIdentity {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly served: ServedCertificate;
}

/** The certificates that a TLS server sends. */
export interface ServedCertificate {
  readonly file: string;
  /** In the order of the file. */
  readonly chain: readonly Certificate[];
  /** Node or this machine trusts the issuer of the first one as a root. */
  readonly isIssuerTrusted: boolean;
}

/** Reads both files, and refuses a key that others can read, and two that are no pair. */
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

/** The chain that the file has now, which may be another one than is served; empty where it cannot be read. */
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

/** As PostgreSQL judges it: a key of root's may be readable by its group, as that of Debian's group ssl-cert is. */
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
