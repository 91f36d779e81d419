import type { PeerType } from '../../contract/peer.ts';
import type { IdentityKey, KeyProof } from '../crypto/identity.ts';
import type { PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import type { Endpoint } from '../net/endpoint.ts';
import type { AccessRules } from './access-rules.ts';
import type { PeerFieldName, peerFields } from './peer-fields.ts';

export { comparePeerIds } from './connector-rank.ts';

/** The kinds of peers, in the contract's terms. */
export const peerTypes = ['connector', 'admin_device', 'origin'] as const satisfies readonly PeerType[];

/** A service's identifier. Ours are integers; another service may send strings. */
export type Id = number | string;

export type PeerId = Id;

/** The fields of a peer that a service may leave out. */
export type PeerFields = {
  readonly [Name in PeerFieldName]?: FieldValues[(typeof peerFields)[Name]['kind']];
};

interface FieldValues {
  readonly text: string;
  readonly number: number;
  /** In milliseconds since 1970. */
  readonly instant: number;
  readonly identityKey: IdentityKey;
  readonly keyProof: KeyProof;
  readonly via: ViaConnectors;
  readonly flag: true;
  readonly tags: readonly string[];
}

/** A host in a private network, as the control plane describes it. */
export interface Peer extends PeerFields {
  readonly id: PeerId;
  readonly name: string;
  readonly type: PeerType;
  readonly publicKey: PublicKey;
  readonly address: Address;
  readonly endpoint: Endpoint | null;
  /** The network's routes that this connector serves; null means all of them. */
  readonly routes: readonly Prefix[] | null;
  /** Its routes out of service, and the network's range if it does not relay. */
  readonly withdrawn: readonly Prefix[];
  /** Set if the service sent a complete wg-quick text instead of a list of peers. */
  readonly given?: ProvidedTunnel;
  /** Set on this host if the service never listed it, and only the enrolment put it in the map. */
  readonly unlisted?: true;
}

/** How a peer is reached that dials only one connector. */
export interface ViaConnectors {
  /** The connector that it dials; null if the service names none. */
  readonly connector: PeerId | null;
}

/** A peer in a complete wg-quick text. Its fields are used unless the guard refuses them. */
export interface ProvidedTunnel {
  readonly allowedIps: readonly Prefix[];
  readonly presharedKey: Secret | null;
  /** Seconds between keepalives, or null for none. */
  readonly keepalive: number | null;
}

/** A peer that this host observed to fail, and avoids if there is another path. */
export interface PeerFailure {
  readonly peer: PeerId;
  /** True if it responds again. Until trusted, it ranks between silent and healthy peers. */
  readonly back: boolean;
  /** Orders silent connectors by their last sign of life: the highest is the latest, if any. */
  readonly heard?: number;
}

/** A network and all its peers at one revision, as a host receives it. */
export interface NetworkMap {
  /** Null if the service sent none. The map can then not be read again. */
  readonly id: Id | null;
  readonly name: string;
  /** Only this host's own address if the service did not send the range. */
  readonly cidr: Prefix;
  readonly routes: readonly Prefix[];
  /** Seconds for which connectors use the map without a confirmation; absent without a limit. */
  readonly maxAge?: number;
  /** The relay between hosts without an endpoint; absent if the service names none. */
  readonly relay?: PeerId;
  /** Who may reach what; absent in an open network, where every peer reaches everything. */
  readonly rules?: AccessRules;
  /** The domains behind routes; absent without any. */
  readonly routeDns?: readonly RouteDns[];
  /** True if hosts spread over equal connectors that masquerade; absent if not. */
  readonly spread?: true;
  /**
   * A random value that stays with the network, and that only its control plane and peers have.
   * Absent from other services.
   */
  readonly nonce?: string;
  /** The ETag with which the service served it, strong or weak; null without one. */
  readonly revision: string | null;
  readonly peers: readonly Peer[];
  /** Entries of the service that are not usable; absent without any. */
  readonly skipped?: readonly SkippedPeer[];
}

/** The DNS servers in a route, and the domains whose names they resolve. */
export interface RouteDns {
  readonly route: Prefix;
  readonly servers: readonly Address[];
  /** In lower case, without a trailing dot. */
  readonly domains: readonly string[];
}

/** An unusable entry of a network's list, as far as it can be read. */
export interface SkippedPeer {
  readonly id: PeerId | null;
  readonly name: string | null;
  readonly publicKey: string | null;
  readonly address: string | null;
  /** What is wrong with it, by the name of the field; never a value. */
  readonly reason: string;
}

/** The contents of a complete wg-quick text other than this host's own settings. */
export interface ProvidedRemarks {
  /** Name servers and search domains. */
  readonly dns: readonly string[];
  /** The parts that are not used, a clause each. */
  readonly remarks: readonly string[];
}
