import { describe, expect, it } from 'vitest';
import { isUnknownIssuer } from '../../../src/core/tls/failure-code.ts';
import { noteTrust, type TrustStore, trustSystem } from '../../../src/core/tls/trust-system.ts';

function openStore(usual: readonly string[], system: readonly string[]) {
  const sets: (readonly string[])[] = [];
  const store: TrustStore = {
    getCACertificates: (type) => (type === 'system' ? system : (sets.at(-1) ?? usual)),
    setDefaultCACertificates: (certificates) => void sets.push(certificates),
  };
  return { store, sets };
}

describe('trustSystem', () => {
  it('adds the certificates of the machine, each once, and takes none away', () => {
    const { store, sets } = openStore(['a', 'b'], ['b', 'c', 'c']);
    trustSystem(store);
    expect(sets).toEqual([['a', 'b', 'c']]);
  });

  it('changes nothing where all of them are trusted, as after the first call', () => {
    const { store, sets } = openStore(['a'], ['b']);
    trustSystem(store);
    trustSystem(store);
    expect(sets).toHaveLength(1);
    const other = openStore(['a'], []);
    trustSystem(other.store);
    expect(other.sets).toEqual([]);
  });
});

describe('noteTrust', () => {
  it('lets each connection that began before the certificates were added try again, and no later one', () => {
    const { store, sets } = openStore(['a'], ['b']);
    const begin = () => noteTrust(() => store);
    const overlapping = [begin(), begin(), begin()];
    expect(overlapping.map((trustMore) => trustMore())).toEqual([true, true, true]);
    expect(begin()()).toBe(false);
    expect(sets).toHaveLength(1);
  });

  it('lets none try again where nothing was added', () => {
    const { store } = openStore(['a'], ['a']);
    const overlapping = [noteTrust(() => store), noteTrust(() => store)];
    expect(overlapping.map((trustMore) => trustMore())).toEqual([false, false]);
  });
});

describe('isUnknownIssuer', () => {
  it.each(['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'CERT_SIGNATURE_FAILURE'])(
    '%s may pass with more issuers',
    (code) => expect(isUnknownIssuer(code)).toBe(true),
  );

  it.each(['CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID', 'CERT_REVOKED', 'ECONNREFUSED'])('%s does not', (code) =>
    expect(isUnknownIssuer(code)).toBe(false),
  );
});
