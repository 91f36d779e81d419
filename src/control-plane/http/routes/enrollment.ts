import * as z from 'zod';
import { Enrollment } from '../../../contract/network.ts';
import {
  EnrolledKeyProof,
  EnrollRequest,
  IdentityKey,
  IdentityProof,
  NetworkSecretTag,
} from '../../../contract/peer.ts';
import { Refusal, reply } from '../../../contract/reply.ts';
import { Secret } from '../../../core/crypto/secret.ts';
import type { MapCache } from '../../push/map-cache.ts';
import { formatETag } from '../../push/to-contract.ts';
import type { Context } from '../../service/context.ts';
import { enroll, readEnrollment } from '../../service/enrollment/enrollment.ts';
import type { App } from '../app.ts';
import type { FailureLimit } from '../limits.ts';

export function addEnrollmentRoute(app: App, context: Context, maps: MapCache, limitFailures: FailureLimit): void {
  app.route({
    method: 'POST',
    url: '/api/networks/enroll',
    config: { access: 'anyone', checkFields: (fields: Partial<EnrollRequest>) => readEnrollment(context, fields) },
    schema: {
      operationId: 'enroll',
      summary: 'Bring a host into the network of an enrolment key',
      description:
        'The enrolment key in the body is the credential. access_token in the reply is a bearer for this peer alone, ' +
        'to read its own network and to change or remove itself. A retry with the same Idempotency-Key, public key and ' +
        'enrolment key gets the same peer, address and access_token and consumes no further use, even of a used-up key. Names are ' +
        'unique within a network, compared as DNS labels: a name that is taken gets a suffix, and the reply has the name given. A key ' +
        'may be for certain types of peers, which a 403 names, and for certain routes, which its connectors are limited to. A host ' +
        'that is in networks already names them in Current-Networks: a key for one of these is a 409, and its use is not taken. ' +
        'Current-Peers has digests of the public keys and addresses that the host has in networks that it joined at other URLs: a key for a ' +
        'network that lists one of them, as after a move of the control plane, is a 412, and its use is not taken. ' +
        'Peer-Identity-Proof proves the Peer-Identity-Key. Where a peer of the network has the proven identity, whatever ' +
        'Current-Networks says, the enrolment replaces that peer for one use of the key: it keeps id, name, address, routes and ' +
        'priority within the limits of the key, and gets the new public_key, type, endpoint and access_token; the old token is revoked. ' +
        'Another public_key than the peer has needs a Peer-Key-Proof later than its last. An identity without a proof replaces nothing, ' +
        'and is not kept where a peer of the network has it or had it, or where peers need approval. There, a new peer has ' +
        'awaiting_approval, and the network in the reply has no other peer; too many such peers are a 403.',
      body: EnrollRequest,
      // Headers, because a service that does not support them ignores them.
      headers: z.looseObject({
        'idempotency-key': IdempotencyKey.optional(),
        'peer-identity-key': IdentityKey.optional(),
        'peer-identity-proof': IdentityProof.optional(),
        'peer-key-proof': EnrolledKeyProof.optional(),
        'network-secret-tag': NetworkSecretTag.optional(),
        'current-networks': CurrentNetworks.optional(),
        'current-peers': CurrentPeers.optional(),
      }),
      response: { 201: reply(Enrollment), 409: Refusal, 412: Refusal },
    },
    handler: async (request, response) => {
      const { headers } = request;
      const key = headers['idempotency-key'];
      const options = {
        idempotencyKey: key === undefined ? null : new Secret(key),
        identity: {
          key: headers['peer-identity-key'],
          proof: headers['peer-identity-proof'],
          keyProof: headers['peer-key-proof'],
        },
        secretTag: headers['network-secret-tag'] ?? null,
        currentNetworks: headers['current-networks']?.split(', ').map(Number) ?? [],
        currentPeers: headers['current-peers']?.split(', ') ?? [],
      };
      const { peer, network, waitingMap, token } = await limitFailures(request, request.body.enrollment_token, () =>
        enroll(context, request.body, options, request.ip),
      );
      const { bytes, revision } = waitingMap ?? (await maps.whole(network));
      // The network may be large, and the map cache serializes it only once for all.
      response.code(201).type('application/json; charset=utf-8');
      return response.send(
        withNetwork({ peer, access_token: token.reveal(), network_etag: formatETag(revision) }, bytes) as never,
      );
    },
  });
}

const WithoutNetwork = reply(Enrollment.omit({ network: true }));

/** The reply with a network that the map cache has serialized as `{"data":…}`. */
function withNetwork(data: z.infer<typeof WithoutNetwork>['data'], network: Buffer): Buffer {
  const rest = JSON.stringify(z.encode(WithoutNetwork, { data }));
  const start = Buffer.from(`${rest.slice(0, -2)},"network":`);
  return Buffer.concat([start, network.subarray('{"data":'.length, -1), Buffer.from('}}')]);
}

const CurrentNetworks = z
  .string()
  .regex(/^\d{1,15}(, \d{1,15}){0,99}$/, { error: 'must be at most 100 ids, each after a comma and a space' })
  .meta({ description: 'The ids of the networks that the host is in, such as "1, 3".' });

const CurrentPeers = z
  .string()
  .regex(/^[\w-]{43}(, [\w-]{43}){0,99}$/, { error: 'must be at most 100 digests, each after a comma and a space' })
  .meta({
    description: 'The SHA-256 of each "PUBLIC_KEY ADDRESS", such as "abc…= 10.77.0.1", in base64url without padding.',
  });

const IdempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .meta({ description: 'Chosen by the caller, the same for each retry.' });
