import { X509Certificate } from 'node:crypto';
import { printable } from '../errors/index.ts';

/** A certificate of a server or issuer. Its texts come from the network, and are sanitized. */
export interface Certificate {
  /** The common name. Without one, the organization. */
  readonly subject: string;
  readonly issuer: string;
  /** The names in subjectAltName. Without one, the common name. */
  readonly names: readonly string[];
  /** Milliseconds since the epoch. */
  readonly validFrom: number;
  /** Milliseconds since the epoch. */
  readonly validTo: number;
  /** True if subject and issuer are the same, as in a root. */
  readonly isSelfIssued: boolean;
  readonly isAuthority: boolean;
  /** True if its extended key usage includes servers, or if it has no such extension. */
  readonly isForServers: boolean;
  /** True if it has its issuer's URL (authority information access), as those of public CAs do. */
  readonly namesIssuerUrl: boolean;
}

/** The result of Node's `getPeerCertificate(true)`. The last certificate may be its own issuer. */
export interface SentCertificate {
  readonly raw?: Uint8Array;
  readonly issuerCertificate?: SentCertificate | undefined;
}

const longestChain = 10;
/** Extended key usage of servers (RFC 5280, section 4.2.1.12), and of any purpose. */
const serverUsages = ['1.3.6.1.5.5.7.3.1', '2.5.29.37.0'];

/** A server's certificate and its sent or trusted issuers; empty if it is unreadable. */
export function readSentChain(sent: SentCertificate): Certificate[] {
  const chain: Certificate[] = [];
  const visited = new Set<SentCertificate>();
  for (let next: SentCertificate | undefined = sent; next?.raw && !visited.has(next); next = next.issuerCertificate) {
    visited.add(next);
    const certificate = readCertificate(next.raw);
    if (certificate === null || chain.length === longestChain) break;
    chain.push(certificate);
  }
  return chain;
}

/** The readable certificates of a PEM file, in order. */
export function readCertificateFile(pem: string): Certificate[] {
  return (pem.match(pemBlock) ?? []).flatMap((block) => readCertificate(block) ?? []);
}

const pemBlock = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]+-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g;

function readCertificate(content: Uint8Array | string): Certificate | null {
  try {
    return describe(new X509Certificate(content));
  } catch {
    return null;
  }
}

function describe(certificate: X509Certificate): Certificate {
  const { subject, issuer, subjectAltName, validFromDate, validToDate, ca, keyUsage, infoAccess } = certificate;
  const name = nameOf(subject);
  return {
    subject: name,
    issuer: nameOf(issuer),
    names: subjectAltName === undefined ? [name] : readAlternativeNames(subjectAltName),
    validFrom: validFromDate.getTime(),
    validTo: validToDate.getTime(),
    isSelfIssued: subject === issuer,
    isAuthority: ca,
    isForServers: keyUsage === undefined || keyUsage.some((usage) => serverUsages.includes(usage)),
    namesIssuerUrl: /^CA Issuers - URI:/m.test(infoAccess ?? ''),
  };
}

/** Node formats a distinguished name as one line per attribute. */
function nameOf(distinguishedName: string | undefined): string {
  const of = (attribute: string) => new RegExp(`^${attribute}=(.+)$`, 'm').exec(distinguishedName ?? '')?.[1];
  return forMessage(of('CN') ?? of('O') ?? of('OU') ?? '') || 'a CA without a name';
}

function readAlternativeNames(text: string): string[] {
  return text.split(', ').flatMap((entry) => {
    const name = /^(?:DNS|IP Address):"?([^"]+)/.exec(entry)?.[1];
    return name === undefined ? [] : [forMessage(name)];
  });
}

/** One line without quotes, of at most 64 characters, the longest common name of X.520. */
function forMessage(text: string): string {
  const line = printable(text)
    .replace(/["'`;\\\s]+/g, ' ')
    .trim();
  return line.length > 64 ? `${line.slice(0, 61)}...` : line;
}

/** To the minute, in UTC. */
export function instant(ms: number): string {
  return Number.isNaN(ms) ? 'an unknown time' : `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
