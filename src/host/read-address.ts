import type { SshClient } from '../core/host-state/actual.ts';
import { type Address, maskPrefix, type Prefix, tryParseAddress } from '../core/net/cidr.ts';

/**
 * Parses an address as the kernel, a resolver or a file writes it: drops the zone, and converts an IPv4-mapped IPv6 address (RFC 4291,
 * 2.5.5.2). Null for anything else: a value of another program is no reason to fail.
 */
export function readAddress(text: string): Address | null {
  const [bare = ''] = text.split('%', 1);
  const address = tryParseAddress(bare.replace(/^::ffff:(?=\d+\.)/i, ''));
  return address?.includes(':') && address.includes('.') ? null : address;
}

/** Parses a prefix, or an address as its host prefix, as the tools of the kernel print it. */
export function readPrefix(text: string): Prefix {
  const range = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`;
  // An operator may have set an IPv4-mapped prefix, which core does not parse: unparsed, it is drift that a pass repairs.
  return /^::ffff:[\d.]{7,15}\/\d{1,3}$/i.test(range) ? (range as Prefix) : maskPrefix(range);
}

/** The session in SSH_CONNECTION (ssh(1)), `CLIENT PORT SERVER PORT`; empty without a client address. */
export function readSshConnection(variable = ''): SshClient[] {
  const [client = '', , server = ''] = variable.split(' ');
  const address = readAddress(client);
  return address === null ? [] : [{ address, local: readAddress(server) }];
}
