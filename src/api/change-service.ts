import { ChangeNetwork } from '../contract/network.ts';
import { ChangePeer } from '../contract/peer.ts';
import { checkRequest } from './check-request.ts';
import { decodeChangedPeer, decodeKeys, decodePeersOut, decodeWholeNetwork } from './decode/admin.ts';
import type { Call, Reply } from './http/attempt.ts';
import type { List } from './pages.ts';
import type { AdminService } from './service.ts';

type ChangeService = Pick<AdminService, 'updateNetwork' | 'listKeys' | 'revokeKey' | 'updatePeer' | 'listPeersOut'>;

/** What was set is the same after a second request as after the first. */
const change = { method: 'PATCH', repeatable: true, answered: true } as const;

/** These operations are extensions of the contract: what is not there may be the operation. */
const unlessAbsent = (list: string, what: string) => ({
  404: `see "${list}" for what there is; if it is there, this service cannot ${what}`,
  405: `this service cannot ${what}; ask its operator`,
});

const outdated = 'nothing was changed; run it again, or use --add-route and --remove-route';

/** The part of the service that changes networks and peers and looks after keys; `call` brings the bearer, `list` too. */
export function changeService(
  call: (request: Call) => Promise<Reply>,
  list: List,
  describes: AdminService['describes'],
): ChangeService {
  return {
    async updateNetwork(network, changes) {
      const json = checkRequest(ChangeNetwork, changes);
      const { body, reading } = await call({
        ...change,
        what: `changing network ${network}`,
        path: `/api/networks/${encodeURIComponent(network)}`,
        json,
        remedies: {
          ...unlessAbsent('cpn network list', 'change networks'),
          ...(changes.expected_routes && { 409: outdated }),
        },
      });
      return decodeWholeNetwork(body, reading);
    },

    async listKeys(network, { all } = { all: false }) {
      const request = {
        method: 'GET',
        repeatable: true,
        answered: true,
        what: `listing the keys of network ${network}`,
        path: `/api/networks/${encodeURIComponent(network)}/enrollment-keys${all ? '?all=true' : ''}`,
        remedies: unlessAbsent('cpn network list', 'list keys'),
      } as const;
      return list(request, decodeKeys);
    },

    async revokeKey(network, key) {
      await call({
        method: 'DELETE',
        repeatable: true,
        answered: false,
        what: `revoking key ${key} of network ${network}`,
        path: `/api/networks/${encodeURIComponent(network)}/enrollment-keys/${encodeURIComponent(key)}`,
        remedies: unlessAbsent('cpn key list', 'revoke keys'),
      });
    },

    async listPeersOut(network) {
      if (!(await describes('peer-suspension'))) return [];
      const request = {
        method: 'GET',
        repeatable: true,
        answered: true,
        what: `listing the suspended peers of network ${network}`,
        path: `/api/networks/${encodeURIComponent(network)}/peers?suspended=true`,
      } as const;
      return list(request, decodePeersOut);
    },

    async updatePeer(network, peer, changes) {
      const json = checkRequest(ChangePeer, changes);
      const { body, reading } = await call({
        ...change,
        what: `changing peer ${peer} of network ${network}`,
        path: `/api/networks/${encodeURIComponent(network)}/peers/${encodeURIComponent(peer)}`,
        json,
        remedies: unlessAbsent('cpn peer list', 'change peers'),
      });
      return decodeChangedPeer(body, reading);
    },
  };
}
