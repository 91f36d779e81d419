import type { Address } from '../../../core/net/cidr.ts';
import { readAddress } from '../../read-address.ts';

export interface Forwarder {
  readonly address: Address;
  readonly port: number;
}

/** Reads files that are named in settings of root. */
export interface SettingsFiles {
  /** The text of a file. Empty unless it is a regular file of root. */
  readonly read: (path: string) => string;
  /** The names in a folder. Empty if it does not exist. */
  readonly list: (folder: string) => readonly string[];
}

export interface StubSettings {
  readonly forwarders: readonly Forwarder[];
  /** True if the settings name all servers that the stub queries. */
  readonly isComplete: boolean;
}

/** The maximum number of files that are read for one stub. */
export const mostFiles = 200;
export const tooMany = `it has more than ${mostFiles} files`;

/** Parses an address with an optional port after the mark. Null for a name or other text. */
export function readForwarder(text: string, mark: '#' | '@'): Forwarder | null {
  const [host = '', port = '53'] = text.split(mark);
  const address = readAddress(host);
  return address === null || !/^\d{1,5}$/.test(port) ? null : { address, port: Number(port) };
}

export function readNameservers(text: string): Forwarder[] {
  return parseResolvers(text, mostOfStub).map((address) => ({ address, port: 53 }));
}

/** MAXNS of glibc, which ignores further servers. */
const mostOfGlibc = 3;

/** systemd-resolved and dnsmasq query all servers. Two cards may have two per family each. */
export const mostOfStub = 8;

/**
 * Reads the servers of a resolv.conf(5), except names. The number is limited because each server
 * stays outside the tunnel, and a DHCP server chooses how many there are.
 *
 * @param most the number of servers that the reader of the file queries
 */
export function parseResolvers(text: string, most = mostOfGlibc): Address[] {
  const names = text.split('\n').map((line) => /^nameserver\s+(\S+)/.exec(line)?.[1] ?? '');
  return [...new Set(names.flatMap((name) => readAddress(name) ?? []))].slice(0, most);
}
