import { AuditActor, AuditTarget } from '../../contract/audit.ts';
import { Role } from '../../contract/auth.ts';
import type { Id } from '../../core/map/model.ts';
import { aliases } from '../aliases.ts';
import type { AuditEntry, KeyOfNetwork, NewToken, OpenSession, PasswordChange, Token, User } from '../service.ts';
import { Field, type Source } from './field.ts';
import { decodeId } from './id.ts';
import { decodeToken } from './map.ts';

const maxListed = 10_000;
const maxName = 1000;

export function decodeUsers(body: unknown, source: Source): User[] {
  return Field.ofReply(body, source).as('users').items(maxListed).map(toUser);
}

export function decodeUser(body: unknown, source: Source): User {
  return toUser(Field.ofReply(body, source));
}

export function decodeTokens(body: unknown, source: Source): Token[] {
  return Field.ofReply(body, source).as('tokens').items(maxListed).map(toToken);
}

export function decodeSessions(body: unknown, source: Source): OpenSession[] {
  return Field.ofReply(body, source).as('sessions').items(maxListed).map(toSession);
}

/** A token just made; its value must be there, for it is shown this once. */
export function decodeNewToken(body: unknown, source: Source): NewToken {
  const token = Field.ofReply(body, source);
  return { ...toToken(token), access_token: decodeToken(token.need(aliases.token.value)) };
}

/** Services without these extensions reply without a body, or with `null`. */
export function decodePasswordChange(body: unknown, source: Source): PasswordChange {
  const none = { sessionsEnded: null, tokensRevoked: null, session: null, usersMade: null, keysMade: null };
  const { data = body } = (body ?? {}) as { readonly data?: unknown };
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return none;
  const change = Field.ofReply(body, source);
  const session = change.find(aliases.passwordChange.session);
  const end = change.find(aliases.passwordChange.expiresAt);
  return {
    sessionsEnded: change.find(aliases.passwordChange.sessionsEnded)?.integer() ?? null,
    tokensRevoked: change.find(aliases.passwordChange.tokensRevoked)?.items(maxListed).map(toToken) ?? null,
    session: session ? { token: decodeToken(session), expiresAt: end?.instant() ?? null } : null,
    usersMade: change.find(aliases.passwordChange.usersMade)?.items(maxListed).map(toUser) ?? null,
    keysMade: change.find(aliases.passwordChange.keysMade)?.items(maxListed).map(toKeyOfNetwork) ?? null,
  };
}

/** The enrolment keys that went with a user; null where the reply has none. */
export function decodeKeysRevoked(body: unknown, source: Source): readonly KeyOfNetwork[] | null {
  const { data = body } = (body ?? {}) as { readonly data?: unknown };
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return null;
  const keys = Field.ofReply(body, source).find(aliases.passwordChange.keysRevoked);
  return keys?.items(maxListed).map(toKeyOfNetwork) ?? null;
}

export function decodeAudit(body: unknown, source: Source): AuditEntry[] {
  return Field.ofReply(body, source).as('audit').items(maxListed).map(toEntry);
}

function toUser(user: Field): User {
  return {
    id: decodeId(user.need(aliases.user.id)),
    email: user.need(aliases.user.email).text(320),
    role: user.need(aliases.user.role).oneOf(Role.options),
    created_at: user.need(aliases.user.createdAt).instant(),
  };
}

function toToken(token: Field): Token {
  return {
    id: decodeId(token.need(aliases.token.id)),
    name: token.need(aliases.token.name).text(120),
    created_at: token.need(aliases.token.createdAt).instant(),
    expires_at: token.find(aliases.token.expiresAt)?.instant() ?? null,
    last_used_at: token.find(aliases.token.lastUsedAt)?.instant() ?? null,
  };
}

function toKeyOfNetwork(key: Field): KeyOfNetwork {
  const network = key.need(aliases.passwordChange.network);
  return { ...idAndName(key), network: idAndName(network) };
}

function idAndName(thing: Field): { id: Id; name: string } {
  return { id: decodeId(thing.need(aliases.token.id)), name: thing.need(aliases.token.name).text(120) };
}

function toSession(session: Field): OpenSession {
  return {
    id: session.need(aliases.openSession.id).integer(),
    device_name: session.find(aliases.openSession.deviceName)?.text(maxName) ?? '',
    created_at: session.need(aliases.openSession.createdAt).instant(),
    expires_at: session.need(aliases.openSession.expiresAt).instant(),
    address: session.find(aliases.openSession.address)?.text(64) ?? null,
    is_current: session.find(aliases.openSession.isCurrent)?.value === true,
  };
}

function toEntry(entry: Field): AuditEntry {
  const actor = entry.need(aliases.audit.actor);
  const target = entry.need(aliases.audit.target);
  return {
    id: decodeId(entry.need(aliases.audit.id)),
    at: entry.need(aliases.audit.at).instant(),
    actor: { ...nameAndId(actor), kind: actor.need(aliases.audit.kind).oneOf(AuditActor.shape.kind.options) },
    action: entry.need(aliases.audit.action).text(64),
    target: { ...nameAndId(target), kind: target.need(aliases.audit.kind).oneOf(AuditTarget.shape.kind.options) },
    address: entry.find(aliases.audit.address)?.text(64) ?? null,
    details: entry.find(aliases.audit.details)?.record() ?? {},
  };
}

function nameAndId(party: Field): { id: Id | null; name: string | null } {
  const id = party.find(aliases.audit.id);
  return { id: id && decodeId(id), name: party.find(aliases.audit.name)?.text(maxName) ?? null };
}
