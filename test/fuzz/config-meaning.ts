import { maskPrefix } from '../../src/core/net/cidr.ts';
import { formatEndpoint } from '../../src/core/net/endpoint.ts';
import type { DesiredPeer, TunnelConfig } from '../../src/core/wg-quick/parse.ts';
import type { WgSettings } from './wg-oracle.ts';

/** The meaning of a configuration for WireGuard, for any parser: keys in hexadecimal, and zero where there is nothing. */
export interface Meaning {
  readonly privateKey: string;
  readonly listenPort: number;
  readonly fwmark: number;
  readonly peers: readonly PeerMeaning[];
}

export interface PeerMeaning {
  readonly publicKey: string;
  readonly presharedKey: string;
  readonly endpoint: string | null;
  readonly keepalive: number;
  readonly allowedIps: readonly string[];
}

const noKey = '0'.repeat(64);

/** As the program reads it. */
export function meaningOf({ privateKey, listenPort, fwmark, peers }: Omit<TunnelConfig, 'address' | 'mtu'>): Meaning {
  return {
    privateKey: hex(privateKey.reveal()),
    listenPort: listenPort ?? 0,
    fwmark: fwmark ?? 0,
    peers: peers.map(meaningOfPeer),
  };
}

export function meaningOfPeer({ publicKey, presharedKey, endpoint, keepalive, allowedIps }: DesiredPeer): PeerMeaning {
  return {
    publicKey: hex(publicKey),
    presharedKey: presharedKey === null ? noKey : hex(presharedKey.reveal()),
    endpoint: endpoint && formatEndpoint(endpoint),
    keepalive: keepalive ?? 0,
    allowedIps,
  };
}

/** As `wg` sent it, with host bits masked as the kernel does. */
export function meaningSent(settings: WgSettings): Meaning {
  const starts = settings.flatMap(([word], index) => (word === 'public_key' ? [index] : []));
  const own = settings.slice(0, starts[0] ?? settings.length);
  return {
    privateKey: findValue(own, 'private_key') ?? noKey,
    listenPort: Number(findValue(own, 'listen_port') ?? 0),
    fwmark: Number(findValue(own, 'fwmark') ?? 0),
    peers: starts.map((start, index) => peerSent(settings.slice(start, starts[index + 1] ?? settings.length))),
  };
}

function peerSent(settings: WgSettings): PeerMeaning {
  return {
    publicKey: findValue(settings, 'public_key') ?? '',
    presharedKey: findValue(settings, 'preshared_key') ?? noKey,
    endpoint: findValue(settings, 'endpoint'),
    keepalive: Number(findValue(settings, 'persistent_keepalive_interval') ?? 0),
    allowedIps: settings.filter(([word]) => word === 'allowed_ip').map(([, value]) => maskPrefix(value)),
  };
}

function findValue(settings: WgSettings, word: string): string | null {
  return settings.find(([each]) => each === word)?.[1] ?? null;
}

function hex(key: string): string {
  return Buffer.from(key, 'base64').toString('hex');
}
