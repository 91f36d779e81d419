/** The functions of `node:tls` that read and change the certificates which connections trust by default. */
export interface TrustStore {
  getCACertificates(type: 'default' | 'system'): readonly string[];
  setDefaultCACertificates(certificates: readonly string[]): void;
}

/** How often {@link trustSystem} added certificates in this process. */
let additions = 0;

/**
 * Makes connections trust the certificates of this machine too: those of the system's store, or of SSL_CERT_FILE and SSL_CERT_DIR.
 *
 * Node reads the store once in a process, which takes 0.1 s and 11 MiB. A client therefore calls this after a certificate of an unknown
 * issuer, so that other clients never pay for it.
 *
 * @param store `node:tls`
 */
export function trustSystem(store: TrustStore): void {
  const trusted = new Set(store.getCACertificates('default'));
  const before = trusted.size;
  for (const certificate of store.getCACertificates('system')) trusted.add(certificate);
  if (trusted.size === before) return;
  store.setDefaultCACertificates([...trusted]);
  additions += 1;
}

/**
 * Notes what connections trust as one of them begins: another connection may call {@link trustSystem} before this one fails.
 *
 * @param load reads `node:tls`, once an issuer was unknown
 * @returns calls {@link trustSystem}, and returns true if more certificates are trusted than when the connection began
 */
export function noteTrust(load: () => TrustStore): () => boolean {
  const before = additions;
  return () => {
    trustSystem(load());
    return additions > before;
  };
}
