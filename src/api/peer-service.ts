import { ChangePeer, EnrollRequest } from '../contract/peer.ts';
import { formatEndpoint } from '../core/endpoint.ts';
import { CannotTell, CannotWithdraw, Refused } from '../core/errors.ts';
import type { ServiceAddress } from '../core/model.ts';
import { Secret } from '../core/secret.ts';
import { aliases } from './aliases.ts';
import { checkRequest } from './check-request.ts';
import type { ClientOptions } from './client-options.ts';
import { decodeEnrollment } from './decode-enrollment.ts';
import { Field } from './field.ts';
import { HttpClient } from './http.ts';
import { readMap } from './read-map.ts';
import type { EnrollmentRequest, PeerService } from './service.ts';

const newKey = 'make a new key with "cpn key create"';
const enrollRemedies = {
  401: `check that the whole key was given, or ${newKey}`,
  403: newKey,
  404: 'check that --api names the control plane',
};
const ownRemedies = {
  401: 'the tunnel stays as it is; if this host was removed from the network, "cpn join" with a new key brings it back; if it goes by a personal token, join again with the same key and --token-file',
  403: 'the tunnel stays as it is; ask an admin whether this host may still be in the network',
  404: 'the tunnel stays as it is; ask an admin whether the network or this host was removed',
};
const unknownExtension =
  'routes cannot be withdrawn through this service, unless it is the network that changed: then "cpn reconcile" reads its newest map; else ask an admin to take them from this connector there';
const withdrawRemedies = {
  ...ownRemedies,
  403: unknownExtension,
  404: unknownExtension,
  405: unknownExtension,
  422: unknownExtension,
};

const askAdmin = 'nothing was changed here; ask an admin to type "cpn peer update"';
const describeRemedies = {
  ...ownRemedies,
  403: askAdmin,
  404: askAdmin,
  405: askAdmin,
  422: 'nothing was changed here; give another value',
};

/** With what a service answers that has no such operation. */
const noOperation: readonly number[] = [404, 405];
/** With what a service answers that has no such operation, or no such field. */
const unknownToService: readonly number[] = [403, 404, 405, 422];

/** What a host asks of the control plane at `address`. Throws InvalidValue for an address that nothing may be sent to. */
export function connectPeerService(address: ServiceAddress, options: ClientOptions = {}): PeerService {
  const http = new HttpClient(address, options);
  return {
    enroll: (request) => enroll(http, request),

    readMap: (network, token, known, wait) =>
      readMap(http, {
        ...{ network, token, known, wait, remedies: ownRemedies },
        onRefused: ({ message }) => options.onRetry?.({ attempt: 1, delayMs: 0, problem: message }),
      }),

    async withdraw(network, peer, token, prefixes) {
      const { body, reading } = await http.call({
        what: `withdrawing ${prefixes.join(', ') || 'nothing'} of peer ${peer} of network ${network}`,
        method: 'PATCH',
        path: `/api/networks/${network}/peers/${encodeURIComponent(peer)}`,
        bearer: token,
        json: checkRequest(ChangePeer, { withdrawn: [...prefixes] }),
        repeatable: true,
        answered: true,
        remedies: withdrawRemedies,
      });
      // A service ignores what it does not know.
      const isHeeded = Field.ofReply(body, reading).find(aliases.peer.withdrawn) !== null;
      if (!isHeeded && prefixes.length > 0) throw new CannotWithdraw(reading.url, 'it takes no notice of "withdrawn"');
    },

    async announceSecret(network, peer, token, tag) {
      try {
        await http.call({
          what: `telling the network secret's tag of peer ${peer} of network ${network}`,
          method: 'PATCH',
          path: `/api/networks/${network}/peers/${encodeURIComponent(peer)}`,
          bearer: token,
          json: checkRequest(ChangePeer, { network_secret_tag: tag }),
          repeatable: true,
          answered: false,
          remedies: ownRemedies,
        });
        return true;
      } catch (error) {
        if (error instanceof Refused && unknownToService.includes(error.status)) return false;
        throw error;
      }
    },

    async changeKey(network, peer, token, publicKey, proof) {
      try {
        const { body, reading } = await http.call({
          what: `changing the key of peer ${peer} of network ${network}`,
          method: 'PATCH',
          path: `/api/networks/${network}/peers/${encodeURIComponent(peer)}`,
          bearer: token,
          json: checkRequest(ChangePeer, { public_key: publicKey, ...(proof && { key_proof: proof }) }),
          repeatable: true,
          answered: true,
          remedies: ownRemedies,
        });
        // A service ignores what it does not know.
        return Field.ofReply(body, reading).find(aliases.peer.publicKey)?.value === publicKey;
      } catch (error) {
        if (error instanceof Refused && noOperation.includes(error.status)) return false;
        throw error;
      }
    },

    async describePeer(network, peer, token, { name, endpoint }) {
      const wanted = endpoint && formatEndpoint(endpoint);
      const { body, reading } = await http.call({
        what: `changing ${name === undefined ? 'the endpoint' : 'name or endpoint'} of peer ${peer} of network ${network}`,
        method: 'PATCH',
        path: `/api/networks/${network}/peers/${encodeURIComponent(peer)}`,
        bearer: token,
        json: checkRequest(ChangePeer, {
          ...(name !== undefined && { name }),
          ...(wanted !== undefined && { endpoint: wanted }),
        }),
        repeatable: true,
        answered: true,
        remedies: describeRemedies,
      });
      // A service ignores what it does not know.
      const told = Field.ofReply(body, reading);
      const ignored = [
        ...(name === undefined || told.find(aliases.peer.name)?.value === name ? [] : ['name']),
        ...(wanted === undefined || (told.find(aliases.peer.endpoint)?.value ?? null) === wanted ? [] : ['endpoint']),
      ];
      if (ignored.length > 0) throw new CannotTell(reading.url, `it takes no notice of ${ignored.join(' and ')}`);
    },

    async removePeer(network, peer, token) {
      const { status } = await http.call({
        what: `removing peer ${peer} of network ${network}`,
        method: 'DELETE',
        path: `/api/networks/${network}/peers/${encodeURIComponent(peer)}`,
        bearer: token,
        repeatable: true,
        goneIsDone: true,
        answered: false,
        remedies: { ...ownRemedies, 405: 'this service cannot remove peers; ask whoever runs it' },
      });
      return status !== 404;
    },
  };
}

async function enroll(http: HttpClient, request: EnrollmentRequest) {
  const json = checkRequest(EnrollRequest, {
    enrollment_token: request.token.reveal(),
    name: request.name,
    peer_type: request.type,
    public_key: request.publicKey,
    ...(request.endpoint ? { endpoint: formatEndpoint(request.endpoint) } : {}),
  });
  const { body, reading } = await http.call({
    what: 'the enrolment',
    method: 'POST',
    path: '/api/networks/enroll',
    headers: {
      'idempotency-key': request.idempotencyKey,
      ...(request.identity && { 'peer-identity-key': request.identity }),
      ...(request.secretTag && { 'network-secret-tag': request.secretTag }),
      ...(request.currentNetworks?.length && { 'current-networks': request.currentNetworks.slice(0, 100).join(', ') }),
    },
    json,
    secrets: [request.token, new Secret(request.idempotencyKey)],
    // With its Idempotency-Key a second request comes to the same peer and consumes no further use.
    repeatable: true,
    answered: true,
    remedies: enrollRemedies,
  });
  return decodeEnrollment(body, reading, request);
}
