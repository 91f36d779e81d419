import { getServers } from 'node:dns';
import type { NetworkInterfaceInfo } from 'node:os';
import type { Underlay } from '../../core/host-state/actual.ts';
import { type InterfaceAddress, maskPrefix } from '../../core/net/cidr.ts';
import { readAddress } from '../read-address.ts';
import { routesOf, type TunnelFile } from './tunnel-files.ts';

/** `os.networkInterfaces()`: interfaces that are up and have an address, by the kernel's names. */
export type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

export function addressesOf(interfaces: Interfaces, link: string): InterfaceAddress[] {
  return (interfaces[link] ?? []).flatMap(({ address, cidr }) => {
    const length = Number(cidr?.split('/')[1] ?? Number.NaN);
    const read = readAddress(address);
    return read === null || Number.isNaN(length) ? [] : [{ address: read, length }];
  });
}

/**
 * The underlay as Node reports it. The guard is weaker than on Linux: it lacks routes of other
 * programs, default gateways and resolvers of single interfaces. A default gateway is in a
 * connected subnet, with which no route may overlap.
 *
 * @param own the kernel's name of our interface
 * @param tunnels the files of our other tunnels, by the kernel's names of their interfaces
 */
export function readUnderlay(
  own: string | null,
  interfaces: Interfaces,
  tunnels: ReadonlyMap<string, TunnelFile>,
): Underlay {
  const others = Object.entries(interfaces)
    .filter(([name, card]) => name !== own && !card?.some(({ internal }) => internal))
    .map(([name]) => ({
      name,
      addresses: addressesOf(interfaces, name).filter(({ address }) => !address.startsWith('fe80:')),
    }));
  return {
    addresses: others
      .filter(({ name }) => !tunnels.has(name))
      .flatMap(({ addresses }) => addresses.map((each) => each.address)),
    connected: others.flatMap(({ name, addresses }) =>
      addresses.map(({ address, length }) => ({ prefix: maskPrefix(`${address}/${length}`), link: name })),
    ),
    routed: [...tunnels].flatMap(([link, file]) => routesOf(file).map((prefix) => ({ prefix, link }))),
    gateways: [],
    uplinks: [],
    links: [],
    resolvers: getServers().flatMap(
      (server) => readAddress(server.replace(/^\[([^\]]*)\].*$|^([\d.]+):\d+$/, '$1$2')) ?? [],
    ),
    underlayMtu: null,
  };
}
