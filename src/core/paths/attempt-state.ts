import type { ActualPeer } from '../host-state/actual.ts';
import type { PeerId } from '../map/model.ts';
import type { SocketEndpoint } from '../net/endpoint.ts';
import type { NatKind } from './candidates.ts';
import type { EndpointKind, Schedule } from './schedule-candidates.ts';

/** The message that starts an attempt, in the contract's terms. */
export interface TryMessage {
  readonly peer: PeerId;
  readonly attempt: number;
  readonly endpoints: readonly string[];
  /** True if the peer takes no direct paths. */
  readonly declined?: boolean | undefined;
  /** Of this host, as connectors observe them. */
  readonly observed?: readonly string[] | undefined;
  readonly nats?: { readonly own: NatKind; readonly peer: NatKind } | undefined;
  /** The kinds of endpoints of both sides; without the field all. */
  readonly kinds?: readonly EndpointKind[] | undefined;
  readonly start_in_ms: number;
  readonly first: boolean;
}

export interface Attempt {
  readonly peer: PeerId;
  readonly number: number;
  /** True on exactly one side: it adds the peer again after two initiations defeated each other. */
  readonly first: boolean;
  /** False if this host has no IPv6 in the tunnel: a handshake then proves the path. */
  readonly canProbe: boolean;
  readonly startAt: number;
  readonly schedule: Schedule;
  readonly state: 'new' | 'trying' | 'probing' | 'ended';
  /** The index of the latest candidate; -1 before the first. */
  readonly at: number;
  /** False while the peer has no endpoint. */
  readonly isSending: boolean;
  /** Bytes of the peer since it was added. */
  readonly heard: number;
  /** Until then a handshake may complete, and the peer is not removed. */
  readonly settlesAt: number;
  /** When the latest candidate ends. */
  readonly endsAt: number;
  /** How often the peer was added with this candidate. */
  readonly additions: number;
  /** Bytes that were sent to this candidate before the latest addition. */
  readonly sentBefore: number;
  /** Unanswered probes since the handshake. */
  readonly probes: number;
  /** True if an answer came, but none to a full-size probe. */
  readonly isNarrow: boolean;
}

export type AttemptAction =
  /**
   * Removes the peer and adds it again, with a keepalive of `trialKeepalive` of attempt.ts. It
   * sends immediately, unless the endpoint is null.
   */
  | { readonly do: 'renew'; readonly endpoint: SocketEndpoint | null }
  /** Sends a small and a full-size echo to the peer's probe address. The result is always given. */
  | { readonly do: 'probe' }
  /** `handshake`: no probe is possible, so the path must be verified after the switch. */
  | { readonly do: 'prove'; readonly by: ProvenBy }
  /** Removes the peer. */
  | { readonly do: 'give-up'; readonly tried: readonly TriedCandidate[] };

export type ProvenBy = 'probe' | 'handshake';

/** What became of a candidate, in the contract's terms. */
export interface TriedCandidate {
  readonly endpoint: string;
  readonly outcome: 'no-answer' | 'handshake' | 'refused';
}

/** `small`: only the small echo was answered. */
export type ProbeResult = 'full' | 'small' | 'none';

export interface AttemptObservation {
  readonly now: number;
  /** The peer in WireGuard's table; null if it is not there. */
  readonly entry: ActualPeer | null;
  /** The result of the probe of the latest action; absent until there is one. */
  readonly probe?: ProbeResult;
  /** True while `additionRate` of attempt.ts allows no further addition on this host. */
  readonly isPaused?: boolean;
}

export interface Advanced {
  readonly attempt: Attempt;
  readonly actions: readonly AttemptAction[];
  /** When to observe again, at the latest; null once the attempt ended. */
  readonly nextAt: number | null;
}
