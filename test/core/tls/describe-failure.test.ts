import { describe, expect, it } from 'vitest';
import type { Certificate } from '../../../src/core/tls/certificate.ts';
import { describeTlsFailure, type TlsServer } from '../../../src/core/tls/describe-failure.ts';
import { UnacceptedCertificate } from '../../../src/core/tls/with-chain.ts';

const now = Date.parse('2030-03-01T12:00:00.000Z');
const day = 86_400_000;
const server: TlsServer = {
  name: 'the control plane',
  client: 'this host',
  host: 'cp.example.net',
  port: '8787',
  flag: '--api',
  plain: 'check the port',
  trust: (certificate) => `trust ${certificate}`,
};
const leaf: Certificate = {
  subject: 'cp.example.net',
  issuer: 'Office CA',
  names: ['cp.example.net'],
  validFrom: now - day,
  validTo: now + day,
  isSelfIssued: false,
  isAuthority: false,
  isForServers: true,
  namesIssuerUrl: false,
};

function errorOf(code: string, message = 'refused'): Error {
  return Object.assign(new Error(message), { code });
}

const failureOf = (error: Error, chain: readonly Certificate[] = [leaf]) =>
  describeTlsFailure(new UnacceptedCertificate(error, chain), server, now);

// Those of real servers are in test/api/tls-servers.ts.
describe('a failure of TLS', () => {
  it('has the issuer of a certificate that was revoked', () => {
    const { problem, remedy } = failureOf(errorOf('CERT_REVOKED'));
    expect(problem).toBe('its TLS certificate was revoked by "Office CA" (CERT_REVOKED)');
    expect(remedy).toBe('replace the certificate and the private key of the control plane');
  });

  it.each([
    ['CERT_HAS_EXPIRED', 'its TLS certificate expired (CERT_HAS_EXPIRED)'],
    ['CERT_NOT_YET_VALID', 'its TLS certificate is not yet valid (CERT_NOT_YET_VALID)'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'its TLS certificate is not for cp.example.net (ERR_TLS_CERT_ALTNAME_INVALID)'],
    [
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'the issuer of its TLS certificate is not trusted on this host (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
    ],
    ['CERT_REVOKED', 'its TLS certificate was revoked (CERT_REVOKED)'],
  ])('%s is described without the certificates, too', (code, problem) => {
    expect(failureOf(errorOf(code), []).problem).toBe(problem);
  });

  it('has both times, and names the clock', () => {
    const expired = failureOf(errorOf('CERT_HAS_EXPIRED'), [{ ...leaf, validTo: now - 2 * day }]);
    expect(expired.problem).toBe(
      'its TLS certificate expired on 2030-02-27 12:00 UTC, and the clock of this host is at 2030-03-01 12:00 UTC (CERT_HAS_EXPIRED)',
    );
    const pending = failureOf(errorOf('CERT_NOT_YET_VALID'), [{ ...leaf, validFrom: now + day }]);
    expect(pending.problem).toContain(
      'is valid from 2030-03-02 12:00 UTC, and the clock of this host is at 2030-03-01',
    );
    expect(pending.remedy).toMatch(/^the clock of this host may be wrong: timedatectl/);
  });

  it('that has no words of its own names the command that shows what the server sends', () => {
    expect(failureOf(errorOf('CRL_HAS_EXPIRED'))).toEqual({
      problem: 'its TLS certificate was not accepted (CRL_HAS_EXPIRED)',
      remedy: 'see what it sends: openssl s_client -connect cp.example.net:8787',
    });
    const ipv6 = { ...server, host: '2001:db8::1' };
    expect(describeTlsFailure(errorOf('ERR_SSL_BAD_RECORD_TYPE'), ipv6, now)).toEqual({
      problem: 'the TLS handshake failed (ERR_SSL_BAD_RECORD_TYPE)',
      remedy: 'see what it sends: openssl s_client -connect [2001:db8::1]:8787',
    });
  });

  it('shows no text of Node or OpenSSL', () => {
    const error = errorOf('UNSPECIFIED', 'canary');
    expect(JSON.stringify(failureOf(error))).not.toContain('canary');
    expect(JSON.stringify(failureOf(errorOf('canary; rm -rf /')))).not.toContain('canary');
  });
});
