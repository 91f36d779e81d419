import type { CpnError } from '../../core/errors/index.ts';
import type { InboundDrop } from '../../core/forward/foreign/find-inbound-drop.ts';
import type { SecretMatch } from '../../core/health/compare-secrets.ts';
import type { SessionState } from '../../core/health/peer-health.ts';
import type { Reachability } from '../../core/health/report/compose-report.ts';
import type { Id, PeerId } from '../../core/map/model.ts';
import type { Options } from '../../core/map/options.ts';
import type { DomainReport } from '../../core/names/split-dns.ts';
import type { Problem } from '../../core/problems/problem.ts';
import type { Change } from '../../core/reconcile/change.ts';
import type { OutsideReport } from '../../core/routing/outside-report.ts';
import type { ForeignRoute } from '../../core/routing/own-routes.ts';
import type { RefusedTraffic } from '../../core/rules/refused.ts';
import type { Certificate } from '../../core/tls/certificate.ts';
import type { Sync } from '../../store/store.ts';

/** The JSON of `cpn status` follows these names closely. */
export interface NetworkStatus {
  /** Null, like `address`, `publicKey` and `keySince`, if the state cannot be read. */
  readonly network: { readonly id: Id | null; readonly name: string } | null;
  readonly interface: string;
  readonly state: 'up' | 'degraded' | 'down';
  readonly address: string | null;
  readonly publicKey: string | null;
  /** In ISO 8601, like the other instants of this interface. */
  readonly keySince: string | null;
  /** When this host's membership expires; null for never. */
  readonly expiresAt: string | null;
  /** When this host learned that the network was deleted; null if it was not. */
  readonly deletedAt: string | null;
  /** When a connector without a new confirmation of its map stops serving; null for never. */
  readonly mapEnd: string | null;
  readonly listenPort: number | null;
  readonly mtu: number | null;
  /** The peer whose measured path limits the MTU; null if none does. */
  readonly pathMtu: { readonly peer: string; readonly measuredAt: string } | null;
  /** The relay that this host uses, and the one that the map names; null if it needs none. */
  readonly relay: { readonly peer: string; readonly named: string | null } | null;
  /** Null if the state cannot be read. */
  readonly options: Options | null;
  readonly peers: readonly PeerStatus[];
  readonly routes: readonly RouteStatus[];
  readonly domains: readonly DomainReport[];
  readonly drift: readonly Change[];
  /** Who may reach what; null if the state cannot be read. */
  readonly rules: RulesStatus | null;
  /** A foreign packet rule that drops packets to the listen port; null for none. */
  readonly inbound: InboundDrop | null;
  /** Routes into the interface from outside this network; a user must remove them. */
  readonly foreignRoutes: readonly ForeignRoute[];
  /** What this host reaches outside its full tunnel; empty without one. */
  readonly outside: OutsideReport;
  /** The only CAs for the control plane's certificate (`--ca-file`); empty: this machine's. */
  readonly authorities: readonly Certificate[];
  readonly sync: Omit<Sync, 'mode'> & { readonly mode: Sync['mode'] | 'local' };
  /** How other hosts reach this one, by the control plane's last reply; null if unknown. */
  readonly reachability: Reachability | null;
  /** Why the state is not `up`, and other remarks. */
  readonly problems: readonly Problem[];
  /** One sentence each. */
  readonly warnings: readonly string[];
  /** Why the network could not be evaluated. */
  readonly failure: CpnError | null;
}

/** `open`: every peer reaches everything. `closed`: only what a rule allows. */
export type RulesStatus =
  | { readonly mode: 'open' }
  | {
      readonly mode: 'closed';
      readonly count: number;
      /** Null if this host enforces no rules, or if that cannot be read. */
      readonly refused: RefusedTraffic | null;
    };

export interface PeerStatus {
  readonly id: PeerId;
  readonly name: string;
  /** The DNS label by which this host resolves it. */
  readonly label: string;
  /** The label of its name, and the peer that has it on this host instead; null for none. */
  readonly labelTaken: { readonly label: string; readonly by: string } | null;
  readonly type: string;
  readonly publicKey: string;
  readonly address: string;
  readonly endpoint: string | null;
  /** The reason why the peer's endpoint is not used; null for a used or missing endpoint. */
  readonly endpointRefused: string | null;
  /** The endpoint's name and addresses, the one in use first; null without a choice. */
  readonly endpointChoice: { readonly name: string; readonly addresses: readonly string[] } | null;
  readonly allowedIps: readonly string[];
  /** `relayed`: no handshake ever, and packets go through a connector. */
  readonly state: SessionState | 'relayed';
  /** `relayed`: packets go through the connector `via`. Null if none go to the peer. */
  readonly path: 'direct' | 'relayed' | null;
  /** Null unless the path is relayed. */
  readonly via: string | null;
  /** In ISO 8601: when this host last moved the peer to this path; null if it never did. */
  readonly since: string | null;
  /** Seconds since the epoch. */
  readonly latestHandshake: number | null;
  readonly rxBytes: number;
  readonly txBytes: number;
  /** `changed` and `held` until a user accepts the mismatch. */
  readonly pin: 'ok' | 'changed' | 'held';
  /** How the service's entry differs from the pin, as text; null if it does not. */
  readonly claim: string | null;
  readonly claimedPublicKey: string | null;
  /** How its network secret compares with this host's; null if neither has one. */
  readonly secret: SecretMatch | null;
}

export interface RouteStatus {
  readonly prefix: string;
  readonly via: string | null;
  /**
   * `never`: a connector that would take over, but never answered this host. A route that this host
   * serves is `active` only while this host is in service for it.
   */
  readonly state: 'active' | 'standby' | 'never' | 'refused' | 'missing';
  readonly reason: string | null;
  /** The prefix behind this host that a route stands for that it serves; absent if not mapped. */
  readonly local?: string;
  /** The remedy of a refused route; null if this host has none. */
  readonly remedy: string | null;
}
