import { describe, expect, it } from 'vitest';
import type { Certificate } from '../../../src/core/tls/certificate.ts';
import { describeTlsFailure, type TlsServer } from '../../../src/core/tls/describe-failure.ts';
import { codeOf, isCertificateCode, isTlsCode, isUnknownIssuer } from '../../../src/core/tls/failure-code.ts';
import { UnacceptedCertificate } from '../../../src/core/tls/with-chain.ts';

const now = Date.parse('2030-03-01T12:00:00.000Z');
const day = 86_400_000;
const server: TlsServer = {
  ...{ name: 'the control plane', client: 'this host', host: 'cp.example.net', port: '8787', flag: '--api' },
  plain: 'check the port',
  trust: (certificate) => `trust ${certificate}`,
};
const leaf: Certificate = {
  ...{ subject: 'cp.example.net', issuer: 'Office CA', names: ['cp.example.net'] },
  ...{ validFrom: now - day, validTo: now + day, isSelfIssued: false, isAuthority: false },
  ...{ isForServers: true, namesIssuerUrl: false },
};
const errorOf = (code: string) => Object.assign(new Error('refused'), { code });
const describeCode = (code: string, chain: readonly Certificate[] = [leaf], of = server) =>
  describeTlsFailure(new UnacceptedCertificate(errorOf(code), chain), of, now);

/** What a code is: of TLS at all, of a certificate, or of an issuer that may be trusted later. */
const issuer = [true, true, true];
const certificate = [true, true, false];
const handshake = [true, false, false];
const other = [false, false, false];

describe('the code of a failure', () => {
  it.each<[string, readonly boolean[], RegExp | null]>([
    ['CERT_HAS_EXPIRED', certificate, /expired/],
    ['CERT_NOT_YET_VALID', certificate, /not yet valid/],
    ['CERT_REVOKED', certificate, /was revoked/],
    ['CERT_UNTRUSTED', issuer, /is not trusted/],
    ['CERT_SIGNATURE_FAILURE', issuer, /was not accepted/],
    ['CRL_HAS_EXPIRED', certificate, /was not accepted/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', certificate, /is for cp\.example\.net, not for/],
    ['HOSTNAME_MISMATCH', certificate, /is for cp\.example\.net, not for/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', issuer, /is self-signed/],
    ['SELF_SIGNED_CERT_IN_CHAIN', issuer, /is not trusted/],
    ['UNABLE_TO_GET_ISSUER_CERT', issuer, /is not trusted/],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', issuer, /is not trusted/],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', issuer, /is neither sent nor trusted/],
    ['EE_KEY_TOO_SMALL', certificate, /the key of its TLS certificate is too weak/],
    ['CA_KEY_TOO_SMALL', certificate, /the key of a CA of its TLS certificate is too weak/],
    ['CA_MD_TOO_WEAK', certificate, /signed with a hash that is too weak/],
    ['INVALID_PURPOSE', certificate, /may not issue certificates for servers/],
    ['INVALID_CA', certificate, /may not issue certificates for servers/],
    ['PATH_LENGTH_EXCEEDED', certificate, /may not issue certificates for servers/],
    ['UNSPECIFIED', certificate, /was not accepted/],
    ['EPROTO', handshake, /may serve plain http/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', handshake, /may serve plain http/],
    ['ERR_SSL_PACKET_LENGTH_TOO_LONG', handshake, /may serve plain http/],
    ['ERR_SSL_HTTP_REQUEST', handshake, /may serve plain http/],
    ['ERR_SSL_UNKNOWN_PROTOCOL', handshake, /may serve plain http/],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', handshake, /does not offer TLS 1\.2/],
    ['ERR_SSL_UNSUPPORTED_PROTOCOL', handshake, /does not offer TLS 1\.2/],
    ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', handshake, /has no TLS certificate for cp\.example\.net/],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', handshake, /requires a client certificate/],
    ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', handshake, /requires a client certificate/],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', handshake, /refused the TLS handshake/],
    ['ERR_OSSL_EVP_UNSUPPORTED', handshake, /the TLS handshake failed/],
    ['ECONNRESET', other, null],
    ['ENOTFOUND', other, null],
    ['UND_ERR_SOCKET', other, null],
  ])('%s is classified and described', (code, flags, words) => {
    expect([isTlsCode, isCertificateCode, isUnknownIssuer].map((is) => is(code))).toEqual(flags);
    if (words === null) return;
    const { problem, remedy } = describeCode(code);
    expect(problem).toMatch(words);
    expect(problem).toContain(`(${code})`);
    expect(remedy).not.toBe('');
  });

  it.each([
    ['EE certificate key too weak', 'EE_KEY_TOO_SMALL'],
    ['CA certificate key too weak', 'CA_KEY_TOO_SMALL'],
    ['CA signature digest algorithm too weak', 'CA_MD_TOO_WEAK'],
    ['something else', 'UNSPECIFIED'],
  ])('that Node does not have is found by OpenSSL’s text: %s', (message, code) => {
    expect(codeOf(Object.assign(new Error(message), { code: 'UNSPECIFIED' }))).toBe(code);
  });
});

describe('the certificates of a failure', () => {
  const root = { ...leaf, subject: 'Office CA', issuer: 'Office CA', isAuthority: true };

  it('name the issuer that expired, and whose it is to replace', () => {
    const expired = { ...root, validTo: now - day };
    const chain = [leaf, expired];
    expect(describeCode('CERT_HAS_EXPIRED', chain).problem).toContain('the certificate of its issuer "Office CA"');
    const trusting = (validTo: number) => ({ ...server, findAuthorities: () => [{ ...root, validTo }] });
    expect(describeCode('CERT_HAS_EXPIRED', chain, trusting(now - day)).problem).toContain('"Office CA" of --ca-file');
    // The trusted one is valid: it is the server that sends the old one.
    expect(describeCode('CERT_HAS_EXPIRED', chain, trusting(now + day)).remedy).toContain('replace that issuer');
  });

  it.each(['Zscaler Root CA', 'FortiGate CA', 'mitmproxy'])('name a proxy that inspects TLS: %s', (name) => {
    const inspected = [{ ...leaf, issuer: name }];
    for (const code of ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'])
      expect(describeCode(code, inspected).problem).toContain(`a proxy that inspects TLS is in between: "${name}"`);
  });

  it.each([
    [[], 'is not for cp'],
    [['a'], 'is for a, not for cp'],
    [['a', 'b', 'c'], 'is for a, b, c, not for cp'],
    [['a', 'b', 'c', 'd'], 'is for a, b, c and 1 other name, not for cp'],
    [['a', 'b', 'c', 'd', 'e'], 'is for a, b, c and 2 other names, not for cp'],
  ])('name up to three names of the server: %j', (names, words) => {
    expect(describeCode('ERR_TLS_CERT_ALTNAME_INVALID', [{ ...leaf, names }]).problem).toContain(words);
  });

  it('name the purpose that the server’s own lacks, before that of its issuer', () => {
    const client = { ...leaf, isForServers: false };
    expect(describeCode('INVALID_PURPOSE', [client]).problem).toContain('lacks serverAuth');
    const plain = { ...root, isAuthority: false };
    expect(describeCode('INVALID_CA', [leaf, plain]).problem).toContain('"Office CA", may not issue');
  });
});
