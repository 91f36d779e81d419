/** Errors without a code in Node, by OpenSSL's text (X509_verify_cert_error_string(3)). */
const unnamed: Readonly<Record<string, string>> = {
  'EE certificate key too weak': 'EE_KEY_TOO_SMALL',
  'CA certificate key too weak': 'CA_KEY_TOO_SMALL',
  'CA signature digest algorithm too weak': 'CA_MD_TOO_WEAK',
};

/** The code from a system call, the resolver, undici, Node or OpenSSL. `unknown` without one. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error)) return 'unknown';
  const { code, message } = error;
  if (code === 'UNSPECIFIED') return unnamed[message] ?? code;
  return typeof code === 'string' && /^[A-Z0-9_/]{1,64}$/.test(code) ? code : 'unknown';
}

/** True for the codes of a failed handshake and of a rejected certificate. */
export function isTlsCode(code: string): boolean {
  return tlsCode.test(code);
}

/** True if the certificates that the server sent explain the failure. */
export function isCertificateCode(code: string): boolean {
  return isTlsCode(code) && !/^(EPROTO|ERR_(SSL|OSSL)_)/.test(code);
}

/** True if the certificate may be accepted after more issuers are trusted. */
export function isUnknownIssuer(code: string): boolean {
  return unknownIssuer.test(code);
}

/** A wrong signature counts too: another issuer may have the name of a trusted one. */
const unknownIssuer =
  /^(UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|CERT_(UNTRUSTED|SIGNATURE_FAILURE))$/;

/** The alert for a missing client certificate, late in TLS 1.3 (RFC 8446, section 4.4.2.4). */
export function isLateAlert(error: unknown): boolean {
  return /^ERR_SSL_.*ALERT_CERTIFICATE_REQUIRED$/.test(codeOf(error));
}

const tlsCode =
  /^(EPROTO$|ERR_(SSL|OSSL|TLS)_|UNSPECIFIED$|CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|EE_KEY_|CA_(KEY|MD)_|INVALID_(CA|PURPOSE)$|PATH_LENGTH_|HOSTNAME_|ERROR_IN_C)/;
