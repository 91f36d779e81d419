import { networkInterfaces } from 'node:os';
import { tryParseAddress } from '../../core/net/cidr.ts';
import { formatEndpoint } from '../../core/net/endpoint.ts';

/**
 * Returns the sockets of the control plane itself, at which no peer listens: its port at each
 * address of this machine, and the addresses of its public URLs. A candidate with such a socket
 * would make hosts send to it.
 *
 * The addresses are read for each attempt, because they come and go. A public URL with a name has
 * none that is known here.
 *
 * @param listening the URL at which it listens; null before it does
 */
export function listOwnSockets(listening: string | null, publicUrls: readonly URL[]): ReadonlySet<string> {
  const port = listening === null ? 0 : portOf(new URL(listening));
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const own = addresses.map(({ address }) => [address, port] as const);
  const published = publicUrls.map((url) => [url.hostname.replace(/^\[|\]$/g, ''), portOf(url)] as const);
  const sockets = [...own, ...published].flatMap(([text, at]) => {
    const host = tryParseAddress(text);
    return host === null ? [] : formatEndpoint({ host, port: at });
  });
  return new Set(sockets);
}

/** 0 for a Unix socket. */
function portOf({ port, protocol }: URL): number {
  return Number(port) || (usualPorts[protocol] ?? 0);
}

const usualPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };
