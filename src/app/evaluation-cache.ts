import type { PublicKey } from '../core/crypto/keys.ts';
import type { ReachedOutside } from '../core/forward/ingress.ts';
import type { Actual, Device, SshClient } from '../core/host-state/actual.ts';
import type { PeerId } from '../core/map/model.ts';
import type { Address, Prefix } from '../core/net/cidr.ts';
import type { Desired } from '../core/reconcile/desired.ts';
import type { TunnelledResolver } from '../core/routing/nested-prefixes.ts';
import type { TunnelConfig } from '../core/wg-quick/parse.ts';
import type { Joined, RefusedDns, State } from '../store/state/state.ts';

export class EvaluationCache {
  readonly #last = new Map<string, PreviousEvaluation>();

  find(link: string): PreviousEvaluation | undefined {
    return this.#last.get(link);
  }

  keep(link: string, evaluation: PreviousEvaluation): void {
    this.#last.set(link, evaluation);
  }

  /** Drops the evaluation of a network that was left, because it contains keys. */
  forget(link: string): void {
    this.#last.delete(link);
  }
}

export interface PreviousEvaluation {
  readonly inputs: DesireInputs;
  readonly wanted: DesiredNetwork;
  /** The device for which the plan had no step at any time; undefined if it had any. */
  readonly settled: Device | null | undefined;
}

export interface EarlierNetwork {
  readonly by: string;
  readonly config: TunnelConfig;
}

/** The inputs of the constraints on the routes of a network. */
export interface ConstraintInputs {
  readonly state: Joined;
  /** The other networks of this host. */
  readonly others: readonly Pick<State, 'interface' | 'createdAt'>[];
  readonly earlier: readonly EarlierNetwork[];
  /** The host without the WireGuard device, whose counters always change. */
  readonly observed: Omit<Actual, 'device'>;
  /** Read only if a route or an address is to be added. */
  readonly sshClients: readonly SshClient[];
  /** Routes that recently led into the tunnel. */
  readonly recalled: readonly Prefix[];
  /** The last-known-good wg-quick file; null without one, or if it is not in cpn's format. */
  readonly saved: TunnelConfig | null;
  /** Prefixes that were removed from `--allow-route`. */
  readonly disallowed: readonly Prefix[];
  /** The routing table for accepted routes. Absent or null if they are in the main table. */
  readonly routeTable?: string | null;
}

export interface OtherNetwork extends Pick<State, 'interface' | 'createdAt' | 'receipt'> {
  readonly isConnector: boolean;
  /** What it reaches outside a full tunnel of this network; empty without a full tunnel. */
  readonly reached: Pick<ReachedOutside, 'api' | 'endpoints'>;
  readonly listenPort: number | null;
  /** Names of its service and connectors, which the domains of this network must not contain. */
  readonly names: readonly string[];
  /** This host's address there; null before it has one. */
  readonly address: Address | null;
}

/** All inputs of a network's desired state. */
export interface DesireInputs extends ConstraintInputs {
  readonly others: readonly OtherNetwork[];
  /** The text of the wg-quick file; null without a file. */
  readonly text: string | null;
  /** The config that was last applied, if it is not that of the wg-quick file. */
  readonly applied: TunnelConfig | null;
  /** The network's label in the names of its peers. */
  readonly label: string;
  /** Addresses of endpoints to which this host has no route outside the tunnel. */
  readonly unreachable: readonly Address[];
  /** Addresses of names at which peers were silent. Learned endpoints with them are not kept. */
  readonly silent: readonly Address[];
  /** The SSH sessions that packet rules could end. They are read only if rules are to be loaded. */
  readonly sessions: readonly SshClient[];
  /** Listed peers that have expired. */
  readonly expired: readonly PeerId[];
  /** The domains behind routes that are public suffixes. */
  readonly suffixes: readonly string[];
  /** DNS settings that were removed a short time ago; null for none. */
  readonly refusedDns: RefusedDns | null;
  /** Peers that this host reaches over a direct path; absent for none. */
  readonly paths?: readonly PeerId[];
}

export interface DesiredNetwork {
  /** False if the map does not list this host: it then reaches no peer, and keeps its key pair. */
  readonly listed: boolean;
  readonly desired: Desired;
  /** The desired text of the wg-quick file. */
  readonly config: string;
  /** The prefixes that the tunnel takes, except a default route. */
  readonly taken: readonly Prefix[];
  /** True if another program routes a part of these: the tunnel may cut off an SSH session. */
  readonly isShared: boolean;
  /** Resolvers of this host behind accepted routes, also while these routes are missing. */
  readonly tunnelledResolvers: readonly TunnelledResolver[];
  /** Peers whose endpoint in the network differs from the one that was last applied. */
  readonly moved: ReadonlySet<PublicKey>;
}
