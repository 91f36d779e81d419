import type { PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Prefix } from '../net/cidr.ts';
import type { SocketEndpoint } from '../net/endpoint.ts';
import type { InterfaceAddress } from '../net/interface-address.ts';

/** A peer as WireGuard is to hold it. Null is a value: no key, no endpoint known, no keepalive. */
export interface DesiredPeer {
  readonly publicKey: PublicKey;
  readonly presharedKey: Secret | null;
  readonly endpoint: SocketEndpoint | null;
  readonly allowedIps: readonly Prefix[];
  /** Seconds between keepalives, or null for none. */
  readonly keepalive: number | null;
}

/** A wg-quick configuration in typed values: what is written to the file, and what the interface is to be. */
export interface TunnelConfig {
  readonly privateKey: Secret;
  /** Null leaves the port to the kernel. */
  readonly listenPort: number | null;
  /** The mark on what WireGuard itself sends; null for none. */
  readonly fwmark: number | null;
  readonly mtu: number;
  /** The interface's own address with the length of the range that is on-link. */
  readonly address: InterfaceAddress;
  readonly peers: readonly DesiredPeer[];
}
