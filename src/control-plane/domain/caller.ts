import type { NetworkLimit, Role } from '../../contract/auth.ts';
import type { ChangeNetwork } from '../../contract/network.ts';
import {
  addressAt,
  covers,
  familyOf,
  hostPrefix,
  maskPrefix,
  type Prefix,
  parsePrefix,
  rangeOf,
  tryParseAddress,
} from '../../core/net/cidr.ts';
import { Forbidden } from '../errors.ts';
import { checkLimit, type Scope } from './network-limit.ts';

export interface UserCaller {
  readonly kind: 'user';
  readonly userId: number;
  readonly email: string;
  readonly organizationId: number;
  readonly role: Role;
  /** The networks to which the user, and then its token, are limited. */
  readonly networks: NetworkLimit;
  readonly credential: {
    readonly kind: 'session' | 'token';
    readonly id: number;
    /** True for a token with a limit of its own. */
    readonly isLimited: boolean;
  };
  readonly address: string;
  /** What the request is about. A change checks it again in its transaction. */
  readonly scope: Scope;
  /** The callers that the operation permits. A change checks them again in its transaction. */
  readonly access: Exclude<AccessRule, 'anyone'>;
}

/** A peer, authenticated by its access token, which is valid only in its own network. */
export interface PeerCaller {
  readonly kind: 'peer';
  readonly peerId: number;
  readonly name: string;
  readonly networkId: number;
  readonly organizationId: number;
  /** A part of the token's hash: after a restore, another peer may have the same id. */
  readonly tokenMark: number;
  /** True until an administrator approves the peer. */
  readonly awaitsApproval: boolean;
  /** When the token expires; null for never. */
  readonly expiresAt: string | null;
  /** The source address of the request. */
  readonly address: string;
  readonly access: Exclude<AccessRule, 'anyone'>;
}

export type Caller = UserCaller | PeerCaller;

/**
 * `peer` adds a peer's access to itself, and `waiting` that of a peer that waits for approval.
 * `sessionOnly` refuses personal tokens.
 */
export type AccessRule =
  | 'anyone'
  | {
      readonly roles: readonly Role[];
      readonly peer: boolean;
      readonly waiting?: boolean;
      readonly sessionOnly?: boolean;
    };

const everyRole: readonly Role[] = ['owner', 'admin', 'member', 'viewer'];
const editingRoles: readonly Role[] = ['owner', 'admin', 'member'];
const administeringRoles: readonly Role[] = ['owner', 'admin'];

export const readers = { roles: everyRole, peer: false } satisfies AccessRule;
export const readersAndPeer = { roles: everyRole, peer: true } satisfies AccessRule;
export const readersAndWaitingPeer = { ...readersAndPeer, waiting: true } satisfies AccessRule;
export const editors = { roles: editingRoles, peer: false } satisfies AccessRule;
export const editorsAndPeer = { roles: editingRoles, peer: true } satisfies AccessRule;
export const editorsAndWaitingPeer = { ...editorsAndPeer, waiting: true } satisfies AccessRule;
export const peerOnly = { roles: [], peer: true } satisfies AccessRule;
export const administrators = { roles: administeringRoles, peer: false } satisfies AccessRule;
export const administratorsInSession = { ...administrators, sessionOnly: true } satisfies AccessRule;
export const owners = { roles: ['owner'], peer: false } satisfies AccessRule;
export const ownersInSession = { ...owners, sessionOnly: true } satisfies AccessRule;
export const readersInSession = { roles: everyRole, peer: false, sessionOnly: true } satisfies AccessRule;

/** A caller whose change sets these tags. Only owners and admins set tags: rules select by them. */
export function requireTagger(caller: Caller, tags: readonly string[] | undefined): Caller {
  return tags === undefined ? caller : { ...caller, access: administrators };
}

/** A caller whose change decides who enters a network: only owners and admins do that. */
export function requireAdmitter(caller: Caller, { approval, self_enroll }: ChangeNetwork): Caller {
  return approval === undefined && self_enroll === undefined ? caller : { ...caller, access: administrators };
}

export function awaitsApproval(): Forbidden {
  return new Forbidden('this peer waits for approval; an admin approves it with "cpn peer approve"');
}

/** @throws Forbidden for a caller without access to the operation, NotFound beyond its limit */
export function checkAccess(caller: Caller, access: Exclude<AccessRule, 'anyone'>): void {
  if (caller.kind === 'peer') {
    if (!access.peer) throw new Forbidden('the token of a peer may read its own network and change or remove itself');
    if (caller.awaitsApproval && access.waiting !== true) throw awaitsApproval();
    return;
  }
  if (access.roles.length === 0) throw new Forbidden('only the peer itself may do this, with its own token');
  if (!access.roles.includes(caller.role)) {
    throw new Forbidden(`the role ${caller.role} may not do this; ask one of: ${access.roles.join(', ')}`);
  }
  if (access.sessionOnly && caller.credential.kind !== 'session') {
    throw new Forbidden('a personal token may not do this; log in with "cpn login" or in the console');
  }
  checkLimit(caller);
}

/** The last 32 bits of an address are those of an IPv4 client (RFC 6052). */
const translated = parsePrefix('64:ff9b::/96');

/** The /24 of an IPv4 or the /48 of an IPv6 address, which often belongs to one site; else null. */
export function widenAddress(text: string): Prefix | null {
  const [plain = ''] = text.split('%', 1);
  const parsed = tryParseAddress(plain);
  const address = parsed && tryParseAddress(parsed.replace(/^::ffff:(?=[0-9.]+$)/, ''));
  // An embedded IPv4 address, such as ::192.0.2.1, is no address of a client.
  if (address === null || (address.includes(':') && address.includes('.'))) return null;
  if (covers(translated, address))
    return maskPrefix(`${addressAt(rangeOf(hostPrefix(address)).first & 0xffff_ffffn)}/24`);
  return maskPrefix(`${address}/${familyOf(address) === 4 ? 24 : 48}`);
}
