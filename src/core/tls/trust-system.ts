/** The functions of `node:tls` that read and set the default trusted certificates. */
export interface TrustStore {
  getCACertificates(type: 'default' | 'system'): readonly string[];
  setDefaultCACertificates(certificates: readonly string[]): void;
}

/** The number of times that {@link trustSystem} added certificates in this process. */
let additions = 0;

/**
 * Adds the machine's certificates, from the system's store or SSL_CERT_FILE and SSL_CERT_DIR, to
 * the trusted ones. Node reads the store once per process, in 0.1 s and 11 MiB, so a client calls
 * this only after a certificate of an unknown issuer. `store` is `node:tls`.
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
 * Records the trust at the start of a connection, because another connection may call {@link
 * trustSystem} before this one fails.
 *
 * @param load loads `node:tls`, after an unknown issuer
 * @returns a function that calls {@link trustSystem}; true if more is trusted than at the start
 */
export function noteTrust(load: () => TrustStore): () => boolean {
  const before = additions;
  return () => {
    trustSystem(load());
    return additions > before;
  };
}
