import { type LookupAddress, lookup } from 'node:dns';
import { isIPv6, type LookupFunction } from 'node:net';
import { addressesOf, type Resolved } from '../../core/names/resolved-names.ts';

/**
 * Milliseconds. A host whose resolvers do not answer learns so after ten seconds by default (resolv.conf(5)), which is as long as a
 * connection may take.
 */
const patienceMs = 3_000;

/**
 * Makes the lookup of a connection: where the resolver fails, the name has the addresses of before. TLS verifies the name whatever the
 * address is. Without TLS they count only where no resolver answers: another network's resolver that does not know the name is a sign
 * that another host has the address.
 *
 * @param resolved the addresses of before
 * @param isPlain true without TLS
 * @param query the resolver of this host
 */
export function addressFinder(resolved: Resolved, isPlain: boolean, query: LookupFunction = lookup): LookupFunction {
  return (name, options, done) => {
    const give = (records: LookupAddress[]) => {
      const [first] = records;
      if (options.all) done(null, records);
      else done(null, first?.address ?? '', first?.family);
    };
    // Plain http to `localhost` is allowed because it stays on this host, so no resolver is queried for it (RFC 6761, section 6.3).
    if (name === 'localhost') return give(records(['127.0.0.1', '::1']));
    const known = records(addressesOf(name, resolved));
    if (known.length === 0) return query(name, options, done);
    let isOpen = true;
    const settle = (answer: () => void) => {
      clearTimeout(timer);
      if (isOpen) answer();
      isOpen = false;
    };
    const timer = setTimeout(() => settle(() => give(known)), patienceMs);
    query(name, options, (error, ...found) => {
      const isUsable = error !== null && (!isPlain || error.code === 'EAI_AGAIN');
      settle(() => (isUsable ? give(known) : done(error, ...found)));
    });
  };
}

function records(addresses: readonly string[]): LookupAddress[] {
  return addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
}
