import type { Role } from '../../../contract/auth.ts';
import type { Person } from '../../domain/issuer-claims.ts';
import { IssuerRefused } from '../../errors.ts';
import { findUserOfIdentity, insertIdentity } from '../../store/accounts/identities.ts';
import { deleteTokens } from '../../store/accounts/personal-tokens.ts';
import { endSessions } from '../../store/accounts/sessions.ts';
import * as store from '../../store/accounts/users.ts';
import { lockTable } from '../../store/database.ts';
import type { Db } from '../../store/tables.ts';
import { type Author, record, system } from '../audit.ts';
import type { Context } from '../context.ts';
import { lockNetworksOf, suspendDevicesOf } from '../devices-of-user.ts';
import { type AccountChange, changeRights, isLastOwner, rankOf } from './change-rights.ts';
import { briefly, revokeMadeBy } from './made-by-user.ts';

type Admission =
  | { readonly user: { readonly id: number; readonly email: string; readonly organizationId: number } }
  /** Committed: a user without a role lost its sessions and tokens. */
  | { readonly refusal: string };

/**
 * Finds the user that the issuer's subject is, or creates it, with the role of its groups. A user
 * whose groups have no role any more loses its sessions, tokens, enrolment keys and own devices.
 * @throws IssuerRefused if the user may not be created; nothing is changed
 */
export async function admit(
  context: Context,
  { transaction, ...change }: Omit<AccountChange, 'author'>,
  issuer: string,
  person: Person,
  address: string | null,
): Promise<Admission> {
  const { subject, role } = person;
  const known = await findUserOfIdentity(transaction, { issuer, subject });
  if (!known) return createUser(context, { ...change, transaction }, issuer, person, address);
  const { organizationId } = known;
  await lockNetworksOf(transaction, { organizationId, userId: known.id });
  await store.lockOrganization(transaction, organizationId);
  const user = await store.lockUser(transaction, organizationId, known.id);
  if (!user) throw new IssuerRefused('the user was removed meanwhile; log in again');
  const author = { organizationId, actor: system, address, readTime: context.readTime };
  const all = { ...change, transaction, author };
  const isLast = await isLastOwner(transaction, organizationId, user.role);
  const refusal = await findRefusal(context, transaction, organizationId, person);
  // An organization always has an owner.
  if (refusal !== null && !isLast) {
    // Without a statement of groups, nothing is certain but that this login has no role.
    if (refusal === noGroups) throw new IssuerRefused(refusal);
    const lowest = { role: 'viewer', networks: user.networks } as const;
    if (user.role !== 'viewer') await changeRights(context, all, { user, organizationId, ...lowest, keepsKeys: false });
    await shutOut(context, all, { ...user, organizationId });
    return { refusal };
  }
  // The lowest role of all users must not take the role of a user whose groups are not shown.
  if (!person.statesGroups && role !== null && rankOf(role) < rankOf(user.role)) throw new IssuerRefused(noGroups);
  const { email } = await updateEmail(transaction, author, user, person.email);
  if (role !== null && role !== user.role && !isLast) {
    const rights = { role, networks: role === 'owner' ? null : user.networks };
    await changeRights(context, all, { user, organizationId, ...rights, keepsKeys: false });
  }
  return { user: { id: user.id, email, organizationId } };
}

const noRole = 'no group of this user has a role here; ask an owner, who finds the groups of each role in --oidc-role';
const noGroups = 'the issuer states no groups of this user, and so no role; see --oidc-groups-claim and --oidc-scopes';
const moved = 'the issuer names another organization than before; an owner of the former one removes the user';

/** Why a known user has no access any more; null if it has. */
async function findRefusal(
  { singleSignOn }: Context,
  transaction: Db,
  organizationId: number,
  { role, statesGroups, organization }: Person,
): Promise<string | null> {
  if (singleSignOn?.settings.organizationClaim != null) {
    const named = organization === null ? null : await store.findOrganizationByName(transaction, organization);
    if (named !== organizationId) return moved;
  }
  if (role !== null) return null;
  return statesGroups ? noRole : noGroups;
}

async function createUser(
  context: Context,
  change: Omit<AccountChange, 'author'>,
  issuer: string,
  person: Person,
  address: string | null,
): Promise<Admission> {
  const { subject, email, role, statesGroups } = person;
  const { transaction } = change;
  if (role === null) throw new IssuerRefused(statesGroups ? noRole : noGroups);
  if (email === null) {
    throw new IssuerRefused(
      'the issuer gave no valid e-mail address; let it add the claim "email" to the scopes of --oidc-scopes',
    );
  }
  // Two first logins at once must not create a user or an organization twice.
  await lockTable(transaction, 'identities');
  if (await findUserOfIdentity(transaction, { issuer, subject }))
    return admit(context, change, issuer, person, address);
  const organizationId = await findOrganization(context, transaction, person.organization, role);
  await store.lockOrganization(transaction, organizationId);
  const created_at = context.now().toISOString();
  const fields = { organization_id: organizationId, email, password_hash: store.noPassword, role, created_at };
  const user = await store.insertUnknownUser(transaction, fields);
  if (!user) {
    throw new IssuerRefused(
      `another user here has the e-mail address ${email}; an owner links it with "cpn user link", or removes it (the subject is in the audit)`,
    );
  }
  await insertIdentity(transaction, user.id, { issuer, subject });
  const author = { organizationId, actor: system, address, readTime: context.readTime };
  const target = { kind: 'user', id: user.id, name: email } as const;
  await record(transaction, author, { action: 'user.create', target, details: { role, issuer, subject } });
  return { user: { id: user.id, email, organizationId } };
}

/** An owner of the issuer may found an organization by the first login. */
async function findOrganization(
  { singleSignOn }: Context,
  transaction: Db,
  name: string | null,
  role: Role,
): Promise<number> {
  const claim = singleSignOn?.settings.organizationClaim ?? null;
  if (claim === null) {
    const only = await store.findOnlyOrganization(transaction);
    if (only !== undefined) return only;
    throw new IssuerRefused(
      'this control plane has several organizations; --oidc-organization-claim must name a claim',
    );
  }
  if (name === null) {
    throw new IssuerRefused(
      `the issuer gave no organization in the claim "${claim}", which --oidc-organization-claim names`,
    );
  }
  const id = await store.findOrganizationByName(transaction, name);
  if (id !== undefined) return id;
  if (role !== 'owner') {
    throw new IssuerRefused('your organization is not here yet; its first login must be that of an owner');
  }
  return store.insertOrganization(transaction, name);
}

/** Follows a change of the address, unless another user has the new one. */
async function updateEmail(transaction: Db, author: Author, user: store.StoredUser, email: string | null) {
  if (email === null || email === user.email || !(await store.setEmailIfFree(transaction, user.id, email))) return user;
  const target = { kind: 'user', id: user.id, name: email } as const;
  await record(transaction, author, { action: 'user.update', target, details: { email, email_before: user.email } });
  return { ...user, email };
}

/** Ends all that the user may use: sessions, tokens, enrolment keys that it made, own devices. */
async function shutOut(
  context: Context,
  { transaction, revise, append, author }: AccountChange,
  { id, email, organizationId }: store.StoredUser & { readonly organizationId: number },
): Promise<void> {
  const sessions_ended = await endSessions(transaction, id);
  const tokens = await deleteTokens(transaction, id, context.now().toISOString());
  const keys = await revokeMadeBy(transaction, { organizationId, userId: id }, context.now());
  const devices_suspended = await suspendDevicesOf(
    { transaction, revise, append, author, now: context.now(), because: 'role changed' },
    { organizationId, userId: id, email },
    () => true,
  );
  if (sessions_ended + tokens.length + keys.length + devices_suspended === 0) return;
  await record(transaction, author, {
    action: 'login.end',
    target: { kind: 'user', id, name: email },
    details: {
      ...{ reason: 'no_role', sessions_ended, devices_suspended, keys_revoked: briefly(keys) },
      tokens_revoked: tokens.map((token) => ({ id: token.id, name: token.name })),
    },
  });
}
