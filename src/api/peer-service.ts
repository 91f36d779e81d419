import { ChangePeer, EnrollRequest } from '../contract/peer.ts';
import { formatEndpoint } from '../core/endpoint.ts';
import { CannotTell, CannotWithdraw, Refused } from '../core/errors.ts';
import type { Feature } from '../core/features.ts';
import type { ServiceAddress } from '../core/model.ts';
import { Secret } from '../core/secret.ts';
import { aliases } from './aliases.ts';
import type { Answer, Call } from './attempt.ts';
import { checkRequest } from './check-request.ts';
import type { ClientOptions } from './client-options.ts';
import { decodeEnrollment } from './decode-enrollment.ts';
import { Field } from './field.ts';
import { HttpClient } from './http.ts';
import { readMap } from './read-map.ts';
import type { EnrollmentRequest, PeerService, Wait } from './service.ts';

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

/** What of a peer a service describes no way to change. */
const undescribed = 'its description has no such operation';

/** With what a service answers that has no such operation. */
const noOperation: readonly number[] = [404, 405];
/** With what a service answers that has no such operation, or no such field. */
const unknownToService: readonly number[] = [403, 404, 405, 422];

/**
 * What a host asks of the service at `address`, which describes these features: no other extension of the public contract is used.
 * Throws InvalidValue for an address that nothing may be sent to.
 *
 * @param onAbsent called where an operation that the service describes is answered as if it were not there
 */
export function connectPeerService(
  address: ServiceAddress,
  features: readonly Feature[],
  { onAbsent = () => {}, ...options }: ClientOptions & { readonly onAbsent?: () => void } = {},
): PeerService {
  const http = new HttpClient(address, options);
  const has = (feature: Feature) => features.includes(feature);
  /** Of an extension: a change of a peer, or its removal. */
  const change = async (call: Call): Promise<Answer> => {
    try {
      const answer = await http.call(call);
      if (noOperation.includes(answer.status)) onAbsent();
      return answer;
    } catch (error) {
      if (error instanceof Refused && noOperation.includes(error.status)) onAbsent();
      throw error;
    }
  };
  return {
    enroll: (request) => enroll(http, request, has),

    readMap: (network, token, known, wait) =>
      readMap(http, {
        ...{ network, token, remedies: ownRemedies },
        known: has('map-revision') ? known : null,
        changes: has('map-revision') && has('map-changes'),
        wait: has('map-revision') && has('map-wait') ? wait : withoutWaiting(wait),
        onRefused: ({ message }) => options.onRetry?.({ attempt: 1, delayMs: 0, problem: message }),
      }),

    async withdraw(network, peer, token, prefixes) {
      if (!has('peer-withdrawn')) {
        if (prefixes.length > 0) throw new CannotWithdraw(address.url, 'it does not describe "withdrawn"');
        return;
      }
      const { body, reading } = await change({
        what: `withdrawing ${prefixes.join(', ') || 'nothing'} of peer ${peer} of network ${network}`,
        method: 'PATCH',
        path: `/api/networks/${encodeURIComponent(network)}/peers/${encodeURIComponent(peer)}`,
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
      if (!has('peer-secret-tag')) return false;
      try {
        await change({
          what: `telling the network secret's tag of peer ${peer} of network ${network}`,
          method: 'PATCH',
          path: `/api/networks/${encodeURIComponent(network)}/peers/${encodeURIComponent(peer)}`,
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
      if (!has('peer-key')) return false;
      const isProven = proof !== null && has('peer-key-proof');
      try {
        const { body, reading } = await change({
          what: `changing the key of peer ${peer} of network ${network}`,
          method: 'PATCH',
          path: `/api/networks/${encodeURIComponent(network)}/peers/${encodeURIComponent(peer)}`,
          bearer: token,
          json: checkRequest(ChangePeer, { public_key: publicKey, ...(isProven && { key_proof: proof }) }),
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
      const isDescribed = (name === undefined || has('peer-name')) && (wanted === undefined || has('peer-endpoint'));
      if (!isDescribed) throw new CannotTell(address.url, undescribed);
      const { body, reading } = await change({
        what: `changing ${name === undefined ? 'the endpoint' : 'name or endpoint'} of peer ${peer} of network ${network}`,
        method: 'PATCH',
        path: `/api/networks/${encodeURIComponent(network)}/peers/${encodeURIComponent(peer)}`,
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
      if (!has('peer-removal')) return false;
      const { status } = await change({
        what: `removing peer ${peer} of network ${network}`,
        method: 'DELETE',
        path: `/api/networks/${encodeURIComponent(network)}/peers/${encodeURIComponent(peer)}`,
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

/** The signal of a wait holds for any call. */
function withoutWaiting(wait: Wait | undefined): Wait | undefined {
  return wait?.signal && { seconds: null, signal: wait.signal };
}

const spent =
  'one use of the enrolment key may be spent, and nothing is sent again: the service describes no Idempotency-Key. To continue, type the same "cpn join" again, which takes a further use of the key; or "cpn leave", and join with a new key; "cpn peer list" shows whether this host is listed already';

async function enroll(http: HttpClient, request: EnrollmentRequest, has: (feature: Feature) => boolean) {
  const isIdempotent = has('enroll-idempotently');
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
      ...(isIdempotent && { 'idempotency-key': request.idempotencyKey }),
      ...(request.identity && has('enroll-identity') && { 'peer-identity-key': request.identity }),
      ...(request.secretTag && has('enroll-secret-tag') && { 'network-secret-tag': request.secretTag }),
      ...(request.currentNetworks?.length &&
        has('enroll-current-networks') && {
          'current-networks': request.currentNetworks.slice(0, 100).map(encodeURIComponent).join(', '),
        }),
    },
    json,
    secrets: [request.token, new Secret(request.idempotencyKey)],
    // With its Idempotency-Key a second request comes to the same peer and consumes no further use.
    repeatable: isIdempotent,
    doubt: spent,
    answered: true,
    remedies: enrollRemedies,
  });
  return decodeEnrollment(body, reading, request);
}
