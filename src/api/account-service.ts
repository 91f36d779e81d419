import { CreatePersonalToken } from '../contract/personal-token.ts';
import { CreateUser } from '../contract/user.ts';
import type { Answer, Call } from './attempt.ts';
import { checkRequest } from './check-request.ts';
import { decodeAudit, decodeNewToken, decodeTokens, decodeUser, decodeUsers } from './decode-account.ts';
import type { AdminService } from './service.ts';

type AccountService = Pick<
  AdminService,
  'listUsers' | 'createUser' | 'deleteUser' | 'listTokens' | 'createToken' | 'deleteToken' | 'readAudit'
>;

const read = { method: 'GET', repeatable: true, answered: true } as const;
const remove = { method: 'DELETE', repeatable: true, answered: false } as const;
/** A second request is refused for its address, or makes a second token. */
const create = { method: 'POST', repeatable: false, answered: true } as const;

/** These operations are extensions of the contract. */
const absent = (what: string) => ({
  404: `the service offers no ${what}; ask whoever runs it`,
  405: `the service offers no ${what}; ask whoever runs it`,
});

/** The part of the service that is about users, their tokens and what was done; `call` brings the bearer. */
export function accountService(call: (request: Call) => Promise<Answer>): AccountService {
  return {
    async listUsers() {
      const remedies = absent('administration of users');
      const { body, reading } = await call({ ...read, what: 'listing the users', path: '/api/users', remedies });
      return decodeUsers(body, reading);
    },

    async createUser({ email, password, role }) {
      const json = checkRequest(CreateUser, { email, password: password.reveal(), role });
      const { body, reading } = await call({
        ...create,
        what: 'making the user',
        path: '/api/users',
        json,
        secrets: [password],
        remedies: absent('administration of users'),
      });
      return decodeUser(body, reading);
    },

    async deleteUser(user) {
      const remedies = { 404: 'see "cpn user list" for the ids there are' };
      await call({
        ...remove,
        what: `removing user ${user}`,
        path: `/api/users/${encodeURIComponent(user)}`,
        remedies,
      });
    },

    async listTokens() {
      const remedies = absent('personal tokens');
      const { body, reading } = await call({ ...read, what: 'listing the tokens', path: '/api/auth/tokens', remedies });
      return decodeTokens(body, reading);
    },

    async createToken(token) {
      const json = checkRequest(CreatePersonalToken, token);
      const { body, reading } = await call({
        ...create,
        what: 'making the token',
        path: '/api/auth/tokens',
        json,
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
      const query = new URLSearchParams();
      if (before !== undefined) query.set('before', String(before));
      if (limit !== undefined) query.set('limit', String(limit));
      const path = query.size > 0 ? `/api/audit?${query}` : '/api/audit';
      const { body, reading } = await call({ ...read, what: 'reading the audit', path, remedies: absent('audit') });
      return decodeAudit(body, reading);
    },
  };
}
