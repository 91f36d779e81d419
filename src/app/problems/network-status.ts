import type { CpnError } from '../../core/errors/index.ts';
import type { InboundDrop } from '../../core/forward/foreign/find-inbound-drop.ts';
import type { SecretMatch } from '../../core/health/compare-secrets.ts';
import type { SessionState } from '../../core/health/peer-health.ts';
import type { Reachability } from '../../core/health/report/compose-report.ts';
import type { Id, PeerId } from '../../core/map/model.ts';
import type { Problem } from '../../core/problems/problem.ts';
import type { Change } from '../../core/reconcile/change.ts';
import type { OutsideReport } from '../../core/routing/outside-report.ts';
import type { ForeignRoute } from '../../core/routing/own-routes.ts';
import type { Certificate } from '../../core/tls/certificate.ts';
import type { Sync } from '../../store/store.ts';

/** The JSON of `cpn status` follows these names closely. */
export interface NetworkStatus {
  /** Null, like `address`, `publicKey` and `keySince`, where the network's state cannot be read. */
  readonly network: { readonly id: Id | null; readonly name: string } | null;
  readonly interface: string;
  readonly state: 'up' | 'degraded' | 'down';
  readonly address: string | null;
  readonly publicKey: string | null;
  /** ISO 8601; when that key was made. */
  readonly keySince: string | null;
  /** ISO 8601; when this host is out of its network. Null where it does not expire. */
  readonly expiresAt: string | null;
  /** ISO 8601; when this host received that the network was deleted. Null where it was not. */
  readonly deletedAt: string | null;
  /**
   * ISO 8601; until when a connector relays and serves without another confirmation of its map.
   * Null for no bound.
   */
  readonly mapEnd: string | null;
  readonly listenPort: number | null;
  readonly mtu: number | null;
  /**
   * Where the MTU follows from a measurement: the peer to which no larger packet passes, and when
   * that was, in ISO 8601.
   */
  readonly pathMtu: { readonly peer: string; readonly measuredAt: string } | null;
  readonly peers: readonly PeerStatus[];
  readonly routes: readonly RouteStatus[];
  readonly drift: readonly Change[];
  /**
   * Packet rules of another program that drop what other hosts send to the listen port; null where
   * none are found.
   */
  readonly inbound: InboundDrop | null;
  /**
   * Routes into the interface that are not of this network; they stay until a user removes them.
   */
  readonly foreignRoutes: readonly ForeignRoute[];
  /** What this host reaches outside its full tunnel; nothing without one. */
  readonly outside: OutsideReport;
  /**
   * The CAs of `--ca-file`, which alone may issue the certificate of the control plane; none where
   * those of this machine may.
   */
  readonly authorities: readonly Certificate[];
  readonly sync: Omit<Sync, 'mode'> & { readonly mode: Sync['mode'] | 'local' };
  /**
   * How other hosts reach this one, as the control plane last replied; null where that is not
   * known.
   */
  readonly reachability: Reachability | null;
  /** Why the state is not `up`, and what else of it is worth knowing. */
  readonly problems: readonly Problem[];
  /** What a user should check, a sentence each. */
  readonly warnings: readonly string[];
  /** Why the network could not be evaluated. */
  readonly failure: CpnError | null;
}

export interface PeerStatus {
  readonly id: PeerId;
  readonly name: string;
  /** The label by which hosts resolve it, where the service gives one. */
  readonly label: string | null;
  readonly type: string;
  readonly publicKey: string;
  readonly address: string;
  readonly endpoint: string | null;
  /** Why its endpoint is not used; null where it is, or there is none. */
  readonly endpointRefused: string | null;
  /**
   * The name of the endpoint and all its addresses, the one to use first; null where it has no
   * choice of addresses.
   */
  readonly endpointChoice: { readonly name: string; readonly addresses: readonly string[] } | null;
  readonly allowedIps: readonly string[];
  /**
   * `relayed` where there was never a handshake, and packets for the peer go through the connector
   * `via`.
   */
  readonly state: SessionState | 'relayed';
  /** Null where packets are handed to the peer itself. */
  readonly via: string | null;
  /** Seconds since the epoch. */
  readonly latestHandshake: number | null;
  readonly rxBytes: number;
  readonly txBytes: number;
  /** `changed` and `held` until a user accepts what the service claims of the peer. */
  readonly pin: 'ok' | 'changed' | 'held';
  /**
   * How the service's entry differs from the pin, as text, and its key; null where it does not
   * differ.
   */
  readonly claim: string | null;
  readonly claimedPublicKey: string | null;
  /** How its network secret compares with this host's; null where neither has one. */
  readonly secret: SecretMatch | null;
}

export interface RouteStatus {
  readonly prefix: string;
  readonly via: string | null;
  /** `never` is a connector that would take over, and that this host never had an answer from. */
  readonly state: 'active' | 'standby' | 'never' | 'refused' | 'missing';
  readonly reason: string | null;
  /** What to do where it is refused; null where this host has no remedy. */
  readonly remedy: string | null;
}
