import type { PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Prefix } from '../net/cidr.ts';
import type { SocketEndpoint } from '../net/endpoint.ts';
import type { InterfaceAddress } from '../net/interface-address.ts';

/** The desired peer in WireGuard. Null is a value: no key, no endpoint, no keepalive. */
export interface DesiredPeer {
  readonly publicKey: PublicKey;
  readonly presharedKey: Secret | null;
  readonly endpoint: SocketEndpoint | null;
  readonly allowedIps: readonly Prefix[];
  /** Seconds between keepalives. Null for none. */
  readonly keepalive: number | null;
}

/** A wg-quick configuration as typed values: the content of the file, and the desired interface. */
export interface TunnelConfig {
  readonly privateKey: Secret;
  /** Null leaves the port to the kernel. */
  readonly listenPort: number | null;
  /** The mark on WireGuard's own packets. Null for none. */
  readonly fwmark: number | null;
  readonly mtu: number;
  /** The interface's own address, with the length of its on-link range. */
  readonly address: InterfaceAddress;
  readonly peers: readonly DesiredPeer[];
}
