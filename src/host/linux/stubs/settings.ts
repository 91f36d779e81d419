import type { Address } from '../../../core/net/cidr.ts';
import { readAddress } from '../../read-address.ts';

/** A server that a stub passes queries on to. */
export interface Forwarder {
  readonly address: Address;
  readonly port: number;
}

/** Reads the files that settings of root name. */
export interface SettingsFiles {
  /** The text; empty where there is no such regular file of root. */
  readonly read: (path: string) => string;
  /** The names in a folder; empty where there is none. */
  readonly list: (folder: string) => readonly string[];
}

/** What the settings of a stub say. */
export interface StubSettings {
  readonly forwarders: readonly Forwarder[];
  /** True where they name all servers that it queries. */
  readonly isComplete: boolean;
}

/** How many files one stub may have. */
export const mostFiles = 200;

/** Parses an address, and a port after the mark. Null for a name, and for anything else. */
export function readForwarder(text: string, mark: '#' | '@'): Forwarder | null {
  const [host = '', port = '53'] = text.split(mark);
  const address = readAddress(host);
  return address === null || !/^\d{1,5}$/.test(port) ? null : { address, port: Number(port) };
}

/** The servers of a resolv.conf(5). */
export function readNameservers(text: string): Forwarder[] {
  return parseResolvers(text, mostOfStub).map((address) => ({ address, port: 53 }));
}

/** MAXNS of glibc, which ignores further ones. */
const mostOfGlibc = 3;

/** systemd-resolved and dnsmasq query all: with two network cards there may be two of each family for each. */
export const mostOfStub = 8;

/**
 * The servers of a resolv.conf(5), without those that are no addresses. Each of them stays outside the tunnel, and a DHCP server chooses
 * how many there are.
 *
 * @param most how many the program queries that reads the file
 */
export function parseResolvers(text: string, most = mostOfGlibc): Address[] {
  const names = text.split('\n').map((line) => /^nameserver\s+(\S+)/.exec(line)?.[1] ?? '');
  return [...new Set(names.flatMap((name) => readAddress(name) ?? []))].slice(0, most);
}
