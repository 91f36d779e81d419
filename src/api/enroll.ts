import type { EnrollRequest } from '../contract/peer.ts';
import { digestPeer } from '../core/crypto/keys.ts';
import { Secret } from '../core/crypto/secret.ts';
import type { Feature } from '../core/map/features.ts';
import { peerTypes } from '../core/map/model.ts';
import { formatEndpoint } from '../core/net/endpoint.ts';
import { checkRequest } from './check-request.ts';
import { decodeEnrollment } from './decode/enrollment.ts';
import type { HttpClient } from './http/client.ts';
import type { EnrollmentRequest } from './service.ts';

const newKey = 'make a new key with "cpn key create"';
const enrollRemedies = (token: Secret) => ({
  401: `${describeLength(token) ?? 'check that the whole key was given'}, or ${newKey}`,
  403: newKey,
  404: 'check that --api names the control plane',
});
/** The length of our keys. Other services' may be shorter, so only a refusal mentions it. */
const keyLength = 'cpn_'.length + 43;

function describeLength(token: Secret): string | null {
  const { length } = token.reveal();
  if (length === keyLength) return null;
  const fault = length < keyLength ? 'part of it is missing' : 'more than a key was given';
  return `it has ${length} characters, and a key of a cpn control plane has ${keyLength}: check whether ${fault}`;
}

const outcomeUnknown =
  'one use of the enrolment key may be spent, and cpn does not retry: the service describes no Idempotency-Key. To continue, type the same "cpn join" again, which takes a further use of the key; or type "cpn leave" and join with a new key; "cpn peer list" shows whether this host is listed already';

/** Certainly valid requests need none of the contract's schemas, which take 20 ms to load. */
async function checkEnrollment(request: EnrollRequest): Promise<EnrollRequest> {
  const { enrollment_token: token, name, peer_type: type, public_key: key, endpoint = '', profile } = request;
  const isPlain =
    /^cpn_[\x21-\x7e]{1,124}$/.test(token) &&
    /^[\w.-]{1,120}$/.test(name) &&
    (type === undefined || peerTypes.includes(type)) &&
    /^[A-Za-z0-9+/]{43}=$/.test(key) &&
    /^[\x21-\x7e]{0,255}$/.test(endpoint) &&
    profile === undefined;
  if (isPlain) return request;
  const { EnrollRequest } = await import('../contract/peer.ts');
  return checkRequest(EnrollRequest, request);
}

/** Enrols this host, without headers that the service does not describe. */
export async function enroll(
  http: HttpClient,
  request: EnrollmentRequest,
  has: (feature: Feature) => boolean,
  enforcesRules = false,
) {
  const isIdempotent = has('enroll-idempotently');
  const json = await checkEnrollment({
    enrollment_token: request.token.reveal(),
    name: request.name,
    peer_type: request.type,
    public_key: request.publicKey,
    ...(request.endpoint ? { endpoint: formatEndpoint(request.endpoint) } : {}),
    ...(request.followsRelay && has('enroll-follows-relay') && { follows_relay: true }),
    ...(request.followsRelay && enforcesRules && has('enroll-enforces-rules') && { enforces_rules: true }),
    ...(request.profile && {
      profile: { connector: request.profile.connector, routes: [...request.profile.routes] },
    }),
  });
  const { body, reading } = await http.call({
    what: 'the enrolment',
    method: 'POST',
    path: '/api/networks/enroll',
    headers: {
      ...(isIdempotent && { 'idempotency-key': request.idempotencyKey }),
      ...(request.identity && has('enroll-identity') && { 'peer-identity-key': request.identity }),
      ...(request.identityProof &&
        has('enroll-identity-proof') && {
          'peer-identity-proof': request.identityProof,
          ...(request.keyProof && { 'peer-key-proof': `${request.keyProof.serial} ${request.keyProof.signature}` }),
        }),
      ...(request.secretTag && has('enroll-secret-tag') && { 'network-secret-tag': request.secretTag }),
      ...(request.currentNetworks?.length &&
        has('enroll-current-networks') && {
          'current-networks': request.currentNetworks.slice(0, 100).map(encodeURIComponent).join(', '),
        }),
      ...(request.currentPeers?.length &&
        has('enroll-current-peers') && {
          'current-peers': request.currentPeers.slice(0, 100).map(digestPeer).join(', '),
        }),
    },
    json,
    secrets: [request.token, new Secret(request.idempotencyKey)],
    // With the same Idempotency-Key, a retry gets the same peer without a further use of the key.
    repeatable: isIdempotent,
    unconfirmed: outcomeUnknown,
    answered: true,
    remedies: enrollRemedies(request.token),
  });
  return decodeEnrollment(body, reading, request);
}
