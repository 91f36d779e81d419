import type { SshClient } from '../core/host-state/actual.ts';
import { type Address, maskPrefix, type Prefix, tryParseAddress } from '../core/net/cidr.ts';

/**
 * Parses an address from the kernel, a resolver or a file. Drops the zone, and converts an
 * IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2). Returns null for any other text: a value of another
 * program must not cause a failure.
 */
export function readAddress(text: string): Address | null {
  const [bare = ''] = text.split('%', 1);
  const address = tryParseAddress(bare.replace(/^::ffff:(?=\d+\.)/i, ''));
  return address?.includes(':') && address.includes('.') ? null : address;
}

/** Parses a prefix as the kernel's tools print it. An address becomes its host prefix. */
export function readPrefix(text: string): Prefix {
  const range = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`;
  // Passes an IPv4-mapped prefix on unparsed, because core does not parse it. If an operator set
  // one, it is drift, which a pass repairs.
  return /^::ffff:[\d.]{7,15}\/\d{1,3}$/i.test(range) ? (range as Prefix) : maskPrefix(range);
}

/** SSH_CONNECTION of ssh(1) is `CLIENT PORT SERVER PORT`. Empty without a client address. */
export function readSshConnection(variable = ''): SshClient[] {
  const [client = '', , server = ''] = variable.split(' ');
  const address = readAddress(client);
  return address === null ? [] : [{ address, local: readAddress(server) }];
}
