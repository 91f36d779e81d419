import { maskPrefix } from '../../src/core/cidr.ts';
import { formatEndpoint } from '../../src/core/endpoint.ts';
import type { DesiredPeer, TunnelConfig } from '../../src/core/model.ts';
import type { Told } from './wg-oracle.ts';

/** What a configuration comes to for WireGuard, whoever read it: keys in hexadecimal, and zero where there is nothing. */
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

/** As we read it. */
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

/** As `wg` told it, with host bits masked as the kernel does. */
export function meaningTold(told: Told): Meaning {
  const starts = told.flatMap(([word], index) => (word === 'public_key' ? [index] : []));
  const own = told.slice(0, starts[0] ?? told.length);
  return {
    privateKey: findValue(own, 'private_key') ?? noKey,
    listenPort: Number(findValue(own, 'listen_port') ?? 0),
    fwmark: Number(findValue(own, 'fwmark') ?? 0),
    peers: starts.map((start, index) => peerTold(told.slice(start, starts[index + 1] ?? told.length))),
  };
}

function peerTold(told: Told): PeerMeaning {
  return {
    publicKey: findValue(told, 'public_key') ?? '',
    presharedKey: findValue(told, 'preshared_key') ?? noKey,
    endpoint: findValue(told, 'endpoint'),
    keepalive: Number(findValue(told, 'persistent_keepalive_interval') ?? 0),
    allowedIps: told.filter(([word]) => word === 'allowed_ip').map(([, value]) => maskPrefix(value)),
  };
}

function findValue(told: Told, word: string): string | null {
  return told.find(([each]) => each === word)?.[1] ?? null;
}

function hex(key: string): string {
  return Buffer.from(key, 'base64').toString('hex');
}
