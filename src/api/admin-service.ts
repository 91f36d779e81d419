import { LoginRequest } from '../contract/auth.ts';
import { CreateEnrollmentKey } from '../contract/enrollment-key.ts';
import { CreateNetwork } from '../contract/network.ts';
import type { Secret } from '../core/crypto/secret.ts';
import { WrongUsage } from '../core/errors/index.ts';
import type { Id } from '../core/map/model.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { accountService } from './account-service.ts';
import { changeService } from './change-service.ts';
import { checkRequest } from './check-request.ts';
import { decodeNetworks, decodeNewKey, decodeProfile, decodeSession, decodeWholeNetwork } from './decode/admin.ts';
import { readAdminFeatures } from './description.ts';
import { healthService } from './health-service.ts';
import type { Call } from './http/attempt.ts';
import { readIfJson } from './http/body.ts';
import { HttpClient } from './http/client.ts';
import type { ClientOptions } from './http/client-options.ts';
import { createList } from './pages.ts';
import type { AdminService } from './service.ts';

const read = { method: 'GET', repeatable: true, answered: true } as const;
/** Of what each service has. */
const readContract = { ...read, alwaysThere: true } as const;
const remove = { method: 'DELETE', repeatable: true, answered: false } as const;
/** Without an Idempotency-Key a second request makes a second token, network or key. */
const create = { method: 'POST', repeatable: false, answered: true } as const;

/** Only a service that speaks of a second factor has one. */
const secondFactor = /two.factor|2fa|second factor|one.time|\botp\b|\bmfa\b/i;

const loginRemedies = {
  401: (reason: string | null) =>
    secondFactor.test(reason ?? '')
      ? 'with two-factor authentication, make a personal token and give --token-file'
      : 'check the email and the password',
  403: 'make a personal token and give --token-file',
};
const goneRemedies = { 404: 'see "cpn network list" for the ids there are' };

/**
 * The operations of an administrator on the control plane at `address`; `token` is null before the login. Throws InvalidValue for an
 * address that nothing may be sent to.
 */
export function connectAdminService(
  address: ServiceAddress,
  token: Secret | null,
  options: ClientOptions = {},
): AdminService {
  const http = new HttpClient(address, options);
  const call = async (request: Call) => {
    if (token === null) throw new WrongUsage(`${request.what} needs a login; sign in with "cpn login"`);
    return http.call({ remedies: goneRemedies, ...request, bearer: token });
  };
  const list = createList({ base: http.url, secrets: token === null ? [] : [token] }, call);
  const describes = readAdminFeatures(address, options);
  return {
    login: (email, password, device) => login(http, email, password, device),

    async logout() {
      await call({ ...create, what: 'the logout', path: '/api/auth/logout', answered: false });
    },

    async profile() {
      const what = 'reading the profile';
      const { body, reading } = await call({ ...read, what, path: '/api/auth/me', receive: readIfJson });
      return decodeProfile(body, reading);
    },

    describes,

    async listNetworks() {
      return list({ ...readContract, what: 'listing the networks', path: '/api/networks' }, decodeNetworks);
    },

    async readNetwork(network) {
      const { body, reading } = await call({
        ...readContract,
        what: `reading network ${network}`,
        path: pathOf(network),
      });
      return decodeWholeNetwork(body, reading);
    },

    async createNetwork(network) {
      const json = checkRequest(CreateNetwork, network);
      const { body, reading } = await call({ ...create, what: 'making the network', path: '/api/networks', json });
      return decodeWholeNetwork(body, reading);
    },

    async deleteNetwork(network) {
      await call({ ...remove, what: `deleting network ${network}`, path: pathOf(network) });
    },

    async createKey(network, key) {
      const json = checkRequest(CreateEnrollmentKey, key);
      const path = `${pathOf(network)}/enrollment-keys`;
      const { body, reading } = await call({ ...create, what: `making a key for network ${network}`, path, json });
      return decodeNewKey(body, reading, json);
    },

    async removePeer(network, peer) {
      const path = `${pathOf(network)}/peers/${encodeURIComponent(peer)}`;
      await call({ ...remove, what: `removing peer ${peer} of network ${network}`, path });
    },

    ...changeService(call, list, describes),
    ...accountService(call, list),
    ...healthService(call, describes),
  };
}

async function login(http: HttpClient, email: string, password: Secret, device: string) {
  const json = checkRequest(LoginRequest, { email, password: password.reveal(), device_name: device });
  const { body, reading } = await http.call({
    ...create,
    what: 'the login',
    path: '/api/auth/login',
    json,
    secrets: [password],
    remedies: loginRemedies,
  });
  return decodeSession(body, reading);
}

function pathOf(network: Id): string {
  return `/api/networks/${encodeURIComponent(network)}`;
}
