import { createHash } from 'node:crypto';
import type { PeerType } from '../../contract/peer.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import type { Options } from '../../core/map/options.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import type { Endpoint } from '../../core/net/endpoint.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import type { State } from '../../store/state/state.ts';
import type { NamedOptions } from './kept-options.ts';

export interface JoinRequest {
  readonly token: Secret;
  readonly service: ServiceAddress;
  readonly name: string;
  readonly type: PeerType;
  readonly endpoint: Endpoint | 'auto' | null;
  /** With null, the first free `cpnN` is used. */
  readonly interface: string | null;
  readonly options: Options;
  /** The fields that the user gave; the others have their default. */
  readonly named: ReadonlySet<NamedOptions>;
  /** Base64. All hosts of the network have it, the control plane does not; null for none. */
  readonly networkSecret: Secret | null;
  /** A user's token for following the network, if the service gives this host no token. */
  readonly personalToken: Secret | null;
  /** True if a service manager joins this host and no user can decide. */
  readonly isUnattended: boolean;
  /** Milliseconds for a first handshake; null for the default. */
  readonly handshakeTimeoutMs: number | null;
}

/** A join that has a state on disk. */
export interface PendingJoin {
  readonly state: State;
  /** The state of an earlier join; null for a new join. */
  readonly before: State | null;
  /** Prefixes that `--allow-route` had in the earlier join but not in this one. */
  readonly disallowed: readonly Prefix[];
}

/** Identifies the key of a join in its state, which must not contain the key itself. */
export function hashToken({ token }: Pick<JoinRequest, 'token'>): string {
  return createHash('sha256').update(token.reveal()).digest('hex');
}
