import type { SshClient } from '../core/host-state/actual.ts';
import { type Address, maskPrefix, type Prefix, tryParseAddress } from '../core/net/cidr.ts';

/**
 * Parses an address from the kernel, a resolver or a file: without its zone, and IPv4-mapped IPv6
 * as IPv4 (RFC 4291, 2.5.5.2). Null for other text: another program's value must cause no failure.
 */
export function readAddress(text: string): Address | null {
  const [bare = ''] = text.split('%', 1);
  const address = tryParseAddress(bare.replace(/^::ffff:(?=\d+\.)/i, ''));
  return address?.includes(':') && address.includes('.') ? null : address;
}

/** Parses a prefix as the kernel's tools print it. An address becomes its host prefix. */
export function readPrefix(text: string): Prefix {
  const range = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`;
  // Core does not parse an IPv4-mapped prefix. If an operator set one, a pass repairs that drift.
  return /^::ffff:[\d.]{7,15}\/\d{1,3}$/i.test(range) ? (range as Prefix) : maskPrefix(range);
}

/** SSH_CONNECTION of ssh(1) is `CLIENT PORT SERVER PORT`. Empty without a client address. */
export function readSshConnection(variable = ''): SshClient[] {
  const [client = '', , server = ''] = variable.split(' ');
  const address = readAddress(client);
  return address === null ? [] : [{ address, local: readAddress(server) }];
}
