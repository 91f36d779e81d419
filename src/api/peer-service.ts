import { EnrollRequest } from '../contract/peer.ts';
import { formatEndpoint } from '../core/endpoint.ts';
import type { ServiceAddress } from '../core/model.ts';
import { Secret } from '../core/secret.ts';
import { checkRequest } from './check-request.ts';
import type { ClientOptions } from './client-options.ts';
import { decodeEnrollment, decodeMap } from './decode.ts';
import { HttpClient } from './http.ts';
import type { EnrollmentRequest, PeerService } from './service.ts';

const newKey = 'make a new key with "cpn key create"';
const enrollRemedies = {
  401: `check that the whole key was given, or ${newKey}`,
  403: `the key is expired, used up or revoked: ${newKey}`,
  404: 'check that --api names the control plane',
};
const ownRemedies = {
  401: 'the tunnel stays as it is; join again with a new key if this host was removed from the network',
  403: 'the tunnel stays as it is; ask an admin whether this host may still be in the network',
  404: 'the tunnel stays as it is; ask an admin whether the network or this host was removed',
};

/** What a host asks of the control plane at `address`. Throws InvalidValue for an address that nothing may be sent to. */
export function connectPeerService(address: ServiceAddress, options: ClientOptions = {}): PeerService {
  const http = new HttpClient(address, options);
  return {
    enroll: (request) => enroll(http, request),

    async readMap(network, token, revision, wait) {
      const { status, body, etag, waited, reading } = await http.call({
        what: `reading network ${network}`,
        method: 'GET',
        path: `/api/networks/${network}`,
        bearer: token,
        ...(revision === null ? {} : { headers: { 'if-none-match': revision } }),
        ...(wait && { wait }),
        repeatable: true,
        answered: true,
        remedies: ownRemedies,
      });
      return { map: status === 304 ? null : decodeMap(body, reading, { network, etag }), waited };
    },

    async removePeer(network, peer, token) {
      await http.call({
        what: `removing peer ${peer} of network ${network}`,
        method: 'DELETE',
        path: `/api/networks/${network}/peers/${encodeURIComponent(peer)}`,
        bearer: token,
        repeatable: true,
        goneIsDone: true,
        answered: false,
        remedies: ownRemedies,
      });
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
    headers: { 'idempotency-key': request.idempotencyKey },
    json,
    secrets: [request.token, new Secret(request.idempotencyKey)],
    // With its Idempotency-Key a second request comes to the same peer and consumes no further use.
    repeatable: true,
    answered: true,
    remedies: enrollRemedies,
  });
  return decodeEnrollment(body, reading, request);
}
