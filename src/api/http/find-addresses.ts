import { type LookupAddress, lookup } from 'node:dns';
import { isIPv6, type LookupFunction } from 'node:net';
import { addressesOf, type Resolved } from '../../core/names/resolved-names.ts';

/**
 * Milliseconds before the known addresses are used. Without a reply, resolvers time out after ten
 * seconds by default (resolv.conf(5)), which is the whole time limit of a connection.
 */
const patienceMs = 3_000;

/**
 * Creates a connection's lookup function, with previous addresses as a fallback if the resolver
 * fails. TLS verifies the name anyway. Without TLS, the fallback applies only if no resolver
 * answers: if another network's resolver lacks the name, another host may have the address.
 *
 * @param resolved the previous addresses
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
    // Plain http to `localhost` is permitted because it stays on this host, so no resolver is
    // queried (RFC 6761, section 6.3).
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
