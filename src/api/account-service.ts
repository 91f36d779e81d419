import { CreatePersonalToken } from '../contract/personal-token.ts';
import { ChangePassword, ChangeUser, CreateUser } from '../contract/user.ts';
import type { Secret } from '../core/crypto/secret.ts';
import { Refused } from '../core/errors/index.ts';
import type { Id } from '../core/map/model.ts';
import { checkRequest } from './check-request.ts';
import {
  decodeAudit,
  decodeKeysRevoked,
  decodeNewToken,
  decodePasswordChange,
  decodeSessions,
  decodeTokens,
  decodeUser,
  decodeUsers,
} from './decode/account.ts';
import type { Call, Reply } from './http/attempt.ts';
import { readOptional } from './http/body.ts';
import type { List } from './pages.ts';
import type { AdminService, AuditEntry } from './service.ts';

type AccountService = Pick<
  AdminService,
  | 'listUsers'
  | 'createUser'
  | 'updateUser'
  | 'deleteUser'
  | 'changePassword'
  | 'listSessions'
  | 'deleteSession'
  | 'listTokens'
  | 'createToken'
  | 'deleteToken'
  | 'readAudit'
>;

const read = { method: 'GET', repeatable: true, answered: true } as const;
const remove = { method: 'DELETE', repeatable: true, answered: false } as const;
/** A second request is refused for its address, or makes a second token. */
const create = { method: 'POST', repeatable: false, answered: true } as const;

/** The entries of the audit that a service gives in one reply. */
const auditPage = 200;

/** These operations are extensions of the contract. */
const absent = (what: string) => ({
  404: `the service offers no ${what}; ask its operator`,
  405: `the service offers no ${what}; ask its operator`,
});

function proofOf(own: Secret | undefined): { readonly current_password?: string } {
  return own === undefined ? {} : { current_password: own.reveal() };
}

/** The part of the service that is about users, their tokens and what was done; `call` brings the bearer, `list` too. */
export function accountService(call: (request: Call) => Promise<Reply>, list: List): AccountService {
  return {
    async listUsers() {
      const remedies = absent('administration of users');
      return list({ ...read, what: 'listing the users', path: '/api/users', remedies }, decodeUsers);
    },

    async createUser({ email, password, role }, own) {
      const json = checkRequest(CreateUser, { email, password: password.reveal(), role, ...proofOf(own) });
      const { body, reading } = await call({
        ...create,
        what: 'making the user',
        path: '/api/users',
        json,
        secrets: [password, ...(own ? [own] : [])],
        remedies: absent('administration of users'),
      });
      return decodeUser(body, reading);
    },

    async deleteUser(user, { keepsKeys } = { keepsKeys: false }) {
      const remedies = { 404: 'see "cpn user list" for the ids there are' };
      const { body, reading } = await call({
        ...remove,
        answered: true,
        receive: readOptional,
        what: `removing user ${user}`,
        path: `/api/users/${encodeURIComponent(user)}${keepsKeys ? '?keep_keys=true' : ''}`,
        remedies,
      });
      return decodeKeysRevoked(body, reading);
    },

    async updateUser(user, changes, own) {
      const json = checkRequest(ChangeUser, { ...changes, ...proofOf(own) });
      const { body, reading } = await call({
        method: 'PATCH',
        repeatable: true,
        answered: true,
        what: `changing user ${user}`,
        path: `/api/users/${user}`,
        json,
        ...(own && { secrets: [own] }),
        remedies: {
          404: 'see "cpn user list" for the users; if it is there, this service cannot change users',
          405: 'this service cannot change users; ask its operator',
        },
      });
      return { ...decodeUser(body, reading), keysRevoked: decodeKeysRevoked(body, reading) };
    },

    async changePassword(current, next, { keepsTokens } = { keepsTokens: false }) {
      const json = checkRequest(ChangePassword, {
        current_password: current.reveal(),
        new_password: next.reveal(),
        ...(keepsTokens && { keep_tokens: true }),
      });
      // After a lost reply, a second request would be refused for a current password that is so no more.
      const { body, reading } = await call({
        method: 'PUT',
        repeatable: false,
        answered: true,
        receive: readOptional,
        what: 'changing the password',
        path: '/api/auth/password',
        json,
        secrets: [current, next],
        remedies: { ...absent('change of passwords'), 403: 'correct it, and try again' },
      });
      return decodePasswordChange(body, reading);
    },

    async listSessions() {
      const asking = call({ ...read, what: 'listing the sessions', path: '/api/auth/sessions' });
      const reply = await asking.catch((error) => {
        if (error instanceof Refused && (error.status === 404 || error.status === 405)) return null;
        throw error;
      });
      return reply && decodeSessions(reply.body, reply.reading);
    },

    async deleteSession(session) {
      const remedies = { 404: 'see "cpn token list" for the sessions there are' };
      await call({ ...remove, what: `ending session ${session}`, path: `/api/auth/sessions/${session}`, remedies });
    },

    async listTokens() {
      const remedies = absent('personal tokens');
      return list({ ...read, what: 'listing the tokens', path: '/api/auth/tokens', remedies }, decodeTokens);
    },

    async createToken(token, password) {
      const json = checkRequest(CreatePersonalToken, { ...token, ...(password && { password: password.reveal() }) });
      const { body, reading } = await call({
        ...create,
        what: 'making the token',
        path: '/api/auth/tokens',
        json,
        ...(password && { secrets: [password] }),
        remedies: absent('personal tokens'),
      });
      return decodeNewToken(body, reading);
    },

    async deleteToken(token) {
      const remedies = { 404: 'see "cpn token list" for the ids there are' };
      await call({
        ...remove,
        what: `revoking token ${token}`,
        path: `/api/auth/tokens/${encodeURIComponent(token)}`,
        remedies,
      });
    },

    async readAudit({ before, limit } = {}) {
      const readPage = async (last: Id | undefined, size: number | undefined) => {
        const query = new URLSearchParams();
        if (last !== undefined) query.set('before', String(last));
        if (size !== undefined) query.set('limit', String(size));
        const path = query.size > 0 ? `/api/audit?${query}` : '/api/audit';
        const { body, reading } = await call({ ...read, what: 'reading the audit', path, remedies: absent('audit') });
        return decodeAudit(body, reading);
      };
      if (limit === undefined) return readPage(before, limit);
      const entries: AuditEntry[] = [];
      for (let last = before; entries.length < limit; last = entries.at(-1)?.id) {
        const size = Math.min(limit - entries.length, auditPage);
        const page = await readPage(last, size);
        entries.push(...page.slice(0, size));
        if (page.length < size) break;
      }
      return entries;
    },
  };
}
