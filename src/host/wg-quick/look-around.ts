import { getServers } from 'node:dns';
import type { NetworkInterfaceInfo } from 'node:os';
import type { Surroundings } from '../../core/actual.ts';
import { maskPrefix } from '../../core/cidr.ts';
import type { InterfaceAddress } from '../../core/model.ts';
import { readAddress } from '../read-address.ts';
import { routesOf, type TunnelFile } from './tunnel-file.ts';

/** What `os.networkInterfaces()` gives: interfaces that are up and have an address, under the kernel's names. */
export type Cards = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** The addresses of an interface. */
export function addressesOf(cards: Cards, link: string): InterfaceAddress[] {
  return (cards[link] ?? []).flatMap(({ address, cidr }) => {
    const length = Number(cidr?.split('/')[1] ?? Number.NaN);
    const read = readAddress(address);
    return read === null || Number.isNaN(length) ? [] : [{ address: read, length }];
  });
}

/**
 * What surrounds a tunnel, as far as Node tells. It is less than on Linux, and so the guard is weaker here: routes of others and
 * default gateways are not known, but gateways are in a connected subnet, which no route may overlap; SSH clients are only
 * that of our own session, and none for a daemon; what was told to the resolvers of a single link is not known.
 *
 * @param own the kernel's name of our interface
 * @param tunnels the files of our other tunnels, by the kernel's names of their interfaces
 * @param sshConnection the variable SSH_CONNECTION, of ssh(1)
 */
export function lookAround(
  own: string | null,
  cards: Cards,
  tunnels: ReadonlyMap<string, TunnelFile>,
  sshConnection = '',
): Surroundings {
  const others = Object.entries(cards)
    .filter(([name, card]) => name !== own && !card?.some(({ internal }) => internal))
    .map(([name]) => ({
      name,
      addresses: addressesOf(cards, name).filter(({ address }) => !address.startsWith('fe80:')),
    }));
  const client = readAddress(sshConnection.split(' ')[0] ?? '');
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
    sshClients: client === null ? [] : [client],
    underlayMtu: null,
  };
}
